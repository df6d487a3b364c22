//! Shorter tapes that fail as well.

/// The most tapes that one shrinking tries
pub const MAX_TRIES: u32 = 4_000;

/// A tape that `fails` as `tape` does, and is as short and as near to zeros as a bounded search finds
///
/// It leaves out pieces of the tape, sets them to zero, and halves numbers, until none of that
/// fails any more or [`MAX_TRIES`] tapes have been tried.
pub fn shrink(tape: Vec<u32>, mut fails: impl FnMut(&[u32]) -> bool) -> Vec<u32> {
    let mut best = tape;
    let mut tries = 0;
    let mut attempt = |best: &mut Vec<u32>, shorter: Vec<u32>, tries: &mut u32| {
        if *tries >= MAX_TRIES || shorter == *best {
            return false;
        }
        *tries += 1;
        let better = fails(&shorter);
        if better {
            *best = shorter;
        }
        better
    };
    loop {
        let mut improved = false;
        let mut size = best.len();
        while size > 0 {
            let mut at = 0;
            while at < best.len() {
                let upto = (at + size).min(best.len());
                let without = [&best[..at], &best[upto..]].concat();
                let mut zeroed = best.clone();
                zeroed[at..upto].fill(0);
                if attempt(&mut best, without, &mut tries) {
                    improved = true;
                    continue;
                }
                improved |= attempt(&mut best, zeroed, &mut tries);
                at += size;
            }
            size /= 2;
        }
        for at in 0..best.len() {
            while best.get(at).is_some_and(|number| *number > 0) {
                let mut smaller = best.clone();
                smaller[at] /= 2;
                let mut less = best.clone();
                less[at] -= 1;
                if !attempt(&mut best, smaller, &mut tries) && !attempt(&mut best, less, &mut tries) {
                    break;
                }
                improved = true;
            }
        }
        if !improved || tries >= MAX_TRIES {
            while best.last() == Some(&0) {
                best.pop();
            }
            return best;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_goes() {
        let tape: Vec<u32> = (0..200).map(|number| number * 7 % 100).collect();
        let fails = |tape: &[u32]| tape.iter().filter(|number| **number >= 40).count() >= 2;
        assert_eq!(shrink(tape, fails), [40, 40]);
    }

    #[test]
    fn the_search_is_bounded() {
        let mut tries = 0;
        let shrunk = shrink(vec![9; 2_000], |_| {
            tries += 1;
            false
        });
        assert_eq!((tries, shrunk.len()), (MAX_TRIES, 2_000));
    }
}
