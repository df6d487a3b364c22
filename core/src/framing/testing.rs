//! What the framings' tests share: a body read in pieces.

use proptest::prelude::*;

use super::{Framer, Framing, FramingError};

/// What a body gives
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) events: Vec<Vec<u8>>,
    pub(super) tail: Option<Vec<u8>>,
    pub(super) error: Option<FramingError>,
}

impl Told {
    /// The events of a body that has no error and no tail
    pub(super) fn events(&self) -> Vec<&str> {
        assert_eq!((&self.error, &self.tail), (&None, &None));
        self.texts()
    }

    pub(super) fn texts(&self) -> Vec<&str> {
        self.events.iter().map(|event| std::str::from_utf8(event).unwrap()).collect()
    }
}

pub(super) fn read<'a>(framing: Framing, limit: usize, reads: impl IntoIterator<Item = &'a [u8]>) -> Told {
    let mut framer = Framer::new(framing, limit);
    let mut told = Told { events: Vec::new(), tail: None, error: None };
    for mut input in reads {
        loop {
            match framer.next(input) {
                Ok((consumed, Some(event))) => {
                    assert_eq!(event.name, None);
                    told.events.push(framer.bytes(input, event.data).to_vec());
                    input = &input[consumed..];
                }
                Ok((consumed, None)) => {
                    assert_eq!(consumed, input.len(), "without an event all of the input is used");
                    break;
                }
                Err(error) => {
                    assert_eq!(framer.next(b"]\n"), Err(error), "it stays failed");
                    assert_eq!(framer.tail(), None);
                    told.error = Some(error);
                    return told;
                }
            }
        }
    }
    if let Some(event) = framer.tail() {
        told.tail = Some(framer.bytes(&[], event.data).to_vec());
        assert_eq!(framer.tail(), None, "a tail comes once");
    }
    told
}

/// What `body` gives, which must be the same whole, byte by byte and at every cut in two
pub(super) fn told(framing: Framing, limit: usize, body: &[u8]) -> Told {
    let whole = read(framing, limit, [body]);
    assert_eq!(read(framing, limit, body.chunks(1)), whole, "byte by byte");
    for cut in 0..=body.len() {
        assert_eq!(read(framing, limit, [&body[..cut], &body[cut..]]), whole, "cut at {cut}");
    }
    whole
}

/// Pieces of a body one after the other, with the places where reads end
pub(super) fn body_in_reads(
    piece: impl Strategy<Value = &'static [u8]>,
) -> impl Strategy<Value = (Vec<u8>, Vec<usize>)> {
    let body = proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat());
    body.prop_flat_map(|body| {
        let cuts = proptest::collection::vec(0..=body.len(), 0..6);
        (Just(body), cuts)
    })
}

/// `body` in reads that end at `cuts`
pub(super) fn reads<'a>(body: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts = cuts.to_vec();
    cuts.extend([0, body.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect()
}
