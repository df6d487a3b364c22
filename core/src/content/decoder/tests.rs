//! The encoders are flate2's over zlib-rs, which shares no code with the decoder.

use std::io::Write;

use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use flate2::{Compression, GzBuilder};
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::content::gzip::MAX_HEADER_BYTES;
use crate::framing::sse;

type Encode = fn(&[&[u8]], u32) -> Vec<u8>;

/// Each encoder, and the coding it writes; all flush after each piece
const ENCODERS: [(&str, Encode); 3] = [("gzip", gzip), ("deflate", zlib), ("deflate", raw)];

fn gzip(pieces: &[&[u8]], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    write_all(&mut encoder, pieces);
    encoder.finish().unwrap()
}

fn zlib(pieces: &[&[u8]], level: u32) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
    write_all(&mut encoder, pieces);
    encoder.finish().unwrap()
}

fn raw(pieces: &[&[u8]], level: u32) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(level));
    write_all(&mut encoder, pieces);
    encoder.finish().unwrap()
}

fn write_all(encoder: &mut impl Write, pieces: &[&[u8]]) {
    for piece in pieces {
        encoder.write_all(piece).unwrap();
        encoder.flush().unwrap();
    }
}

fn decoder(encoding: &str) -> Decoder {
    Decoder::new(encoding).unwrap().expect("it is compressed")
}

/// All that one read gives
fn read(
    decoder: &mut Decoder,
    mut input: &[u8],
    room: usize,
    text: &mut Vec<u8>,
) -> Result<(), ContentError> {
    let mut output = vec![0; room];
    loop {
        let decoded = decoder.decode(input, &mut output)?;
        text.extend_from_slice(&output[..decoded.produced]);
        input = &input[decoded.consumed..];
        if !decoded.more {
            assert_eq!(input, b"");
            return Ok(());
        }
        assert!(decoded.produced > 0, "a call with room gets on");
    }
}

/// What a body decodes to, and how it ends
type Told = (Vec<u8>, Result<(), ContentError>);

fn decode<'a>(encoding: &str, room: usize, reads: impl IntoIterator<Item = &'a [u8]>) -> Told {
    let mut decoder = decoder(encoding);
    let mut text = Vec::new();
    for input in reads {
        if let Err(error) = read(&mut decoder, input, room, &mut text) {
            assert_eq!(decoder.decode(b"", &mut [0]), Err(error), "it stays failed");
            assert_eq!(decoder.finish(), Err(error));
            return (text, Err(error));
        }
    }
    let end = decoder.finish();
    (text, end)
}

/// What `body` decodes to, which must be the same whole, byte by byte and at every cut in two
fn told(encoding: &str, body: &[u8]) -> Told {
    let whole = decode(encoding, 1 << 16, [body]);
    assert_eq!(decode(encoding, 1, body.chunks(1)), whole, "byte by byte");
    for cut in 0..=body.len() {
        assert_eq!(decode(encoding, 7, [&body[..cut], &body[cut..]]), whole, "cut at {cut}");
    }
    whole
}

fn corrupt(reason: &'static str) -> Result<(), ContentError> {
    Err(ContentError::Corrupt(reason))
}

#[test]
fn c05_each_flushed_block_yields_its_events_at_once() {
    let events: Vec<String> = (0..50)
        .map(|number| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{number}\"}}}}]}}\n\n"))
        .collect();
    for (encoding, encode) in ENCODERS {
        let flushed = |count: usize| -> Vec<u8> {
            let pieces: Vec<&[u8]> = events[..count].iter().map(String::as_bytes).collect();
            encode(&pieces, 6)
        };
        let body = flushed(events.len());
        let mut decoder = decoder(encoding);
        let mut framer = sse::Framer::new(1 << 10);
        let mut at = 0;
        for (index, event) in events.iter().enumerate() {
            // Until the block's end the streams of one and of more pieces are the same.
            let shorter = flushed(index + 1);
            let flush = shorter.iter().zip(&body).take_while(|(one, other)| one == other).count();
            let end = if index + 1 == events.len() { body.len() } else { flush };
            let mut text = Vec::new();
            read(&mut decoder, &body[at..end], 64, &mut text).unwrap();
            assert_eq!(text, event.as_bytes(), "{encoding}");
            let (consumed, found) = framer.next(&text).unwrap();
            assert_eq!((consumed, found.is_some()), (text.len(), true));
            at = end;
        }
        assert_eq!(decoder.finish(), Ok(()));
    }
}

#[test]
fn c05_the_corpus_header_with_data_behind_it() {
    let body = [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", &gzip(&[b"data: [DONE]\n\n"], 6)[10..]].concat();
    assert_eq!(told("gzip", &body), (b"data: [DONE]\n\n".to_vec(), Ok(())));
    assert_eq!(told("gzip", &body[..10]), (vec![], Err(ContentError::Incomplete { got: 10 })));
}

#[test]
fn every_part_of_a_gzip_header_is_skipped() {
    let mut encoder = GzBuilder::new()
        .extra(vec![0, 1, 2])
        .filename("name")
        .comment("comment")
        .mtime(1)
        .write(Vec::new(), Compression::fast());
    encoder.write_all(b"text").unwrap();
    let body = encoder.finish().unwrap();
    assert_eq!(body[3], 0b1_1100);
    assert_eq!(told("gzip", &body), (b"text".to_vec(), Ok(())));

    // The same with a checksum of the header, and with an extra field of no length
    let data = 10 + 2 + 3 + 5 + 8;
    let mut header = body[..data].to_vec();
    header[3] |= 0b10;
    let mut crc = Crc::new();
    crc.add(&header);
    let [low, high, ..] = crc.value().to_le_bytes();
    let checked = |low| [&header, &[low, high][..], &body[data..]].concat();
    assert_eq!(told("gzip", &checked(low)), (b"text".to_vec(), Ok(())));
    assert_eq!(told("gzip", &checked(!low)), (vec![], corrupt("the checksum does not fit the gzip header")));
    let bare = [&[0x1F, 0x8B, 8, 0b100, 0, 0, 0, 0, 0, 0, 0, 0], &body[data..]].concat();
    assert_eq!(told("gzip", &bare), (b"text".to_vec(), Ok(())));
}

#[test]
fn a_header_that_is_no_gzip_of_ours_is_refused() {
    let good = gzip(&[b"text"], 6);
    for (at, byte, reason) in [
        (0, b'd', "not gzip data"),
        (1, 0x8C, "not gzip data"),
        (2, 7, "gzip data in an unknown format"),
        (3, 0x20, "gzip data in an unknown format"),
        (3, 0x80, "gzip data in an unknown format"),
    ] {
        let mut body = good.clone();
        body[at] = byte;
        assert_eq!(told("gzip", &body), (vec![], corrupt(reason)));
    }
    let mut endless = vec![0x1F, 0x8B, 8, 0b1000, 0, 0, 0, 0, 0, 0];
    endless.resize(MAX_HEADER_BYTES - 1, b'x');
    let end = Err(ContentError::Incomplete { got: MAX_HEADER_BYTES as u64 - 1 });
    assert_eq!(decode("gzip", 1, [&endless[..]]), (vec![], end));
    endless.push(b'x');
    assert_eq!(decode("gzip", 1, [&endless[..]]), (vec![], corrupt("the gzip header is too long")));
}

#[test]
fn gzip_members_in_a_row_are_one_body() {
    let body = [gzip(&[b"one "], 6), gzip(&[], 6), gzip(&[b"two"], 0)].concat();
    assert_eq!(told("gzip", &body), (b"one two".to_vec(), Ok(())));
    // Only the two bytes together begin another.
    let first = gzip(&[b"one"], 6);
    let bad = [&first[..], &[0x1F, 0x8B, 9]].concat();
    assert_eq!(told("gzip", &bad), (b"one".to_vec(), corrupt("gzip data in an unknown format")));
    let cut = [&first[..], &[0x1F, 0x8B]].concat();
    assert_eq!(
        told("gzip", &cut),
        (b"one".to_vec(), Err(ContentError::Incomplete { got: first.len() as u64 + 2 }))
    );
}

#[test]
fn what_follows_the_end_is_ignored() {
    for (encoding, encode) in ENCODERS {
        for behind in [&b"\0\0\0\0"[..], b"\r\n", b"\x1f", b"\x1f\x1f\x8b", b"{\"error\":1}"] {
            let body = [&encode(&[b"text"], 6), behind].concat();
            assert_eq!(told(encoding, &body), (b"text".to_vec(), Ok(())), "{encoding} {behind:?}");
        }
    }
}

#[test]
fn nothing_is_an_empty_body() {
    for encoding in ["gzip", "deflate"] {
        assert_eq!(told(encoding, b""), (vec![], Ok(())));
    }
}

#[test]
fn a_cut_body_gives_what_came_and_is_incomplete() {
    let text = b"to be or not to be, that is the question";
    for (encoding, encode) in ENCODERS {
        let body = encode(&[text], 6);
        for cut in 1..body.len() {
            let (came, end) = decode(encoding, 16, [&body[..cut]]);
            assert!(text.starts_with(&came), "{encoding} cut at {cut}");
            assert_eq!(end, Err(ContentError::Incomplete { got: cut as u64 }), "{encoding} cut at {cut}");
        }
    }
}

#[test]
fn damage_never_passes_for_another_text() {
    let text = b"to be or not to be, that is the question; to be or not to be";
    for (encoding, encode, checked_from) in [("gzip", ENCODERS[0].1, 10), ("deflate", ENCODERS[1].1, 0)] {
        let good = encode(&[&text[..20], &text[20..]], 6);
        for at in checked_from..good.len() {
            for bit in 0..8 {
                let mut body = good.clone();
                body[at] ^= 1 << bit;
                let (came, end) = decode(encoding, 16, [&body[..]]);
                assert!(end.is_err() || came == text, "{encoding}: bit {bit} of byte {at}");
            }
        }
    }
    let mut body = gzip(&[text], 6);
    let last = body.len() - 1;
    body[last] ^= 1;
    assert_eq!(told("gzip", &body), (text.to_vec(), corrupt("the checksum does not fit the data")));
    let mut body = zlib(&[text], 6);
    let last = body.len() - 1;
    body[last] ^= 1;
    assert_eq!(told("deflate", &body), (text.to_vec(), corrupt("the checksum does not fit the data")));
}

#[test]
fn a_copy_from_before_the_data_is_damage() {
    // `KA`, then a copy from further back than that; and a copy of three bytes from one back at once
    let bodies = [
        &b"\x4B\x41\x2C\x51\xB4\x52\xC8\x48\xCD\xC9\x47\x26\xB9\xB8\x52\x48\x96\x00\x00"[..],
        b"\x03\x02\x00",
    ];
    for body in bodies {
        let (_, end) = told("deflate", body);
        assert_eq!(end, corrupt("not valid deflate data"), "{body:?}");
        // Neither does it reach into the member before.
        let second = [&gzip(&[b"first"], 6)[..], &gzip(&[], 6)[..10], body].concat();
        let (came, end) = told("gzip", &second);
        assert_eq!(end, corrupt("not valid deflate data"), "{body:?} behind {came:?}");
    }
}

#[test]
fn a_bomb_comes_out_only_as_there_is_room() {
    const SIZE: usize = 16 << 20;
    let zeros = vec![0; SIZE];
    let body = gzip(&[&zeros], 9);
    assert!(body.len() < SIZE / 1000);
    let mut decoder = decoder("gzip");
    let (mut input, mut output, mut total) = (&body[..], [1; 1000], 0);
    loop {
        let decoded = decoder.decode(input, &mut output).unwrap();
        assert!(output[..decoded.produced].iter().all(|byte| *byte == 0));
        total += decoded.produced;
        input = &input[decoded.consumed..];
        // What was read and not told is never more than the window, and a few bytes of codes.
        let told = body.len() * total / SIZE;
        assert!(body.len() - input.len() <= told + 100, "{} bytes read at {total}", body.len() - input.len());
        if !decoded.more {
            break;
        }
    }
    assert_eq!((total, input.len(), decoder.finish()), (SIZE, 0, Ok(())));
}

#[test]
fn memory_held_is_as_documented() {
    let held = size_of::<Decoder>() + Inflater::heap_bytes();
    assert!(held <= 44 << 10, "{held} bytes");
}

#[test]
fn without_room_there_is_more_and_nothing_is_lost() {
    let body = gzip(&[b"text"], 6);
    let mut decoder = decoder("gzip");
    let decoded = decoder.decode(&body, &mut []).unwrap();
    assert_eq!((decoded.produced, decoded.more), (0, true));
    let mut text = Vec::new();
    read(&mut decoder, &body[decoded.consumed..], 3, &mut text).unwrap();
    assert_eq!((text, decoder.finish()), (b"text".to_vec(), Ok(())));
}

#[test]
fn debug_tells_sizes_and_no_content() {
    let body = gzip(&[b"secret"], 0);
    let mut decoder = decoder("gzip");
    decoder.decode(&body, &mut [0; 64]).unwrap();
    assert_eq!(format!("{decoder:?}"), format!("Decoder {{ got: {}, .. }}", body.len()));
}

/// Text that compresses well here and badly there, longer than the window at times
fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        (any::<u8>(), 0..40_000_usize).prop_map(|(byte, count)| vec![byte; count]),
        (1..60_usize).prop_map(|count| "data: {\"delta\":\"a\"}\n\n".repeat(count).into_bytes()),
        (0..4_usize, any::<u64>()).prop_map(|(kilobytes, seed)| {
            let mut random = fastrand::Rng::with_seed(seed);
            (0..kilobytes << 10).map(|_| random.u8(..)).collect()
        }),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// `bytes` in pieces that end at `cuts`
fn pieces<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_another_encoder_wrote_comes_back(
        text in text(),
        flushes in proptest::collection::vec(any::<Index>(), 0..6),
        reads in proptest::collection::vec(any::<Index>(), 0..12),
        level in 0..=9_u32,
        room in 1..70_000_usize,
    ) {
        for (encoding, encode) in ENCODERS {
            let body = encode(&pieces(&text, &flushes), level);
            let (came, end) = decode(encoding, room, pieces(&body, &reads));
            prop_assert!(came == text, "{} bytes of {}", came.len(), text.len());
            prop_assert_eq!(end, Ok(()));
        }
    }

    #[test]
    fn damage_gives_the_same_for_any_split_and_room(
        text in text(),
        damage in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..4),
        reads in proptest::collection::vec(any::<Index>(), 0..12),
        room in 1..70_000_usize,
    ) {
        for (encoding, encode) in ENCODERS {
            let mut body = encode(&[&text], 6);
            for (at, byte) in &damage {
                *at.get_mut(&mut body) = *byte;
            }
            let (came, end) = decode(encoding, room, pieces(&body, &reads));
            let (whole, whole_end) = decode(encoding, 1 << 15, [&body[..]]);
            prop_assert!(came == whole, "{} and {} bytes", came.len(), whole.len());
            prop_assert_eq!(end, whole_end);
        }
    }
}
