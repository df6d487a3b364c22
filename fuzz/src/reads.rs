//! The reads in which an input arrives.

/// The longest read of a split at random, in bytes
const LONGEST: usize = 24;

/// One input in several splits, which must all come to the same: byte by byte, in two, and in many
///
/// They follow from the input alone, so that an input which fails fails again. Some reads are empty.
pub(crate) fn splits(input: &[u8]) -> [Vec<&[u8]>; 3] {
    let mut rng = rng(input);
    let cut = rng.usize(0..=input.len());
    let mut many = Vec::new();
    let mut rest = input;
    while !rest.is_empty() {
        let (read, behind) = rest.split_at(rng.usize(0..=rest.len().min(LONGEST)));
        many.push(read);
        rest = behind;
    }
    [input.chunks(1).collect(), vec![&input[..cut], &input[cut..]], many]
}

/// Random numbers that follow from the input alone
pub(crate) fn rng(input: &[u8]) -> fastrand::Rng {
    // FNV-1a
    let hash = input.iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    fastrand::Rng::with_seed(hash)
}

/// The first byte, which chooses what is tried, and the rest
pub(crate) fn choice(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (*first, rest))
}
