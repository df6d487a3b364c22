//! Bytes into the decoder of `gzip` and `deflate` bodies.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use steadfast::content::{ContentError, Decoder};

use crate::reads::{choice, rng, splits};

/// The most decoded bytes that are looked at: a small input can hold a thousand times as much
const MAX_DECODED: usize = 1 << 20;

/// All that a body comes to
#[derive(Debug, PartialEq, Eq)]
struct Told {
    body: Vec<u8>,
    end: Result<(), ContentError>,
    /// It went beyond [`MAX_DECODED`]
    stopped: bool,
}

/// A compressed body, or text that is compressed first; the first byte chooses which, and the coding
///
/// Any split, and any room for what comes out, gives the same bytes and the same error. What flate2
/// decodes comes out as flate2 has it, what is whole is whole to flate2, and what flate2 compresses
/// comes back.
pub fn content(data: &[u8]) {
    let (choice, rest) = choice(data);
    let coding = if choice & 1 == 0 { "gzip" } else { "deflate" };
    let is_text = choice & 2 != 0;
    let packed;
    let body = if is_text {
        packed = packed_as(coding, choice, rest);
        &packed
    } else {
        rest
    };
    let whole = decoded(coding, &[body], &mut || 4096);
    let mut rooms = rng(body);
    for reads in splits(body) {
        let other = decoded(coding, &reads, &mut || rooms.usize(1..300));
        if whole.stopped || other.stopped {
            let length = whole.body.len().min(other.body.len());
            assert_eq!(other.body[..length], whole.body[..length], "read in {reads:?}");
        } else {
            assert_eq!(other, whole, "read in {reads:?}");
        }
    }
    if is_text {
        assert_eq!(whole.body, rest[..rest.len().min(whole.body.len())]);
        assert!(whole.stopped || (whole.body.len() == rest.len() && whole.end == Ok(())), "{whole:?}");
    } else if !body.is_empty() && !whole.stopped {
        compare(coding, body, &whole);
    }
}

fn decoded(coding: &str, reads: &[&[u8]], room: &mut dyn FnMut() -> usize) -> Told {
    let mut decoder = Decoder::new(coding).expect("a known coding").expect("a coding");
    let mut told = Told { body: Vec::new(), end: Ok(()), stopped: false };
    for read in reads {
        let mut input = *read;
        loop {
            let mut output = vec![0; room()];
            let step = match decoder.decode(input, &mut output) {
                Ok(step) => step,
                Err(error) => {
                    assert_eq!(decoder.decode(input, &mut output), Err(error), "a failure stays");
                    assert_eq!(decoder.finish(), Err(error), "a failure stays");
                    told.end = Err(error);
                    return told;
                }
            };
            assert!(step.consumed > 0 || step.produced > 0 || !step.more, "no progress");
            told.body.extend_from_slice(&output[..step.produced]);
            input = &input[step.consumed..];
            if told.body.len() > MAX_DECODED {
                told.stopped = true;
                return told;
            }
            if !step.more {
                assert!(input.is_empty(), "where no more is to come, all of the input is used");
                break;
            }
        }
    }
    told.end = decoder.finish();
    told
}

/// Compares with flate2, which reads one member of gzip data
fn compare(coding: &str, body: &[u8], told: &Told) {
    let mut other = Vec::new();
    let room = MAX_DECODED as u64;
    let result = if coding == "gzip" {
        GzDecoder::new(body).take(room).read_to_end(&mut other)
    } else if body[0] & 0x0F == 8 {
        ZlibDecoder::new(body).take(room).read_to_end(&mut other)
    } else {
        DeflateDecoder::new(body).take(room).read_to_end(&mut other)
    };
    match (result, told.end) {
        (Ok(_), _) if coding == "gzip" => assert!(told.body.starts_with(&other), "another first member"),
        (Ok(_), end) => assert_eq!((&told.body, end), (&other, Ok(()))),
        (Err(error), Ok(())) => panic!("whole, but to flate2: {error}"),
        (Err(_), Err(_)) => {}
    }
}

fn packed_as(coding: &str, choice: u8, text: &[u8]) -> Vec<u8> {
    let level = Compression::new(u32::from(choice >> 3) % 10);
    // A flush in the middle, as a server makes one behind each event.
    let (first, second) = text.split_at(text.len() / 2);
    fn pack<W: Write>(mut encoder: W, first: &[u8], second: &[u8]) -> W {
        encoder.write_all(first).and_then(|()| encoder.flush()).expect("memory takes all");
        encoder.write_all(second).expect("memory takes all");
        encoder
    }
    let packed = match (coding, choice & 4) {
        ("gzip", _) => pack(GzEncoder::new(Vec::new(), level), first, second).finish(),
        (_, 0) => pack(ZlibEncoder::new(Vec::new(), level), first, second).finish(),
        (_, _) => pack(DeflateEncoder::new(Vec::new(), level), first, second).finish(),
    };
    packed.expect("memory takes all")
}
