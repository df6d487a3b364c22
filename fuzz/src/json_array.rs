//! Bytes into the framer of a JSON array.

use serde_json::value::RawValue;
use steadfast::framing::FramingError;
use steadfast::framing::json_array::Framer;

use crate::reads::{choice, splits};

const MARK: &[u8] = b"\xEF\xBB\xBF";
/// Beyond any input
const LIMIT: usize = 16 << 20;

/// All that a body tells
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    elements: Vec<Vec<u8>>,
    is_whole: bool,
    failure: Option<FramingError>,
}

/// A JSON array: the first byte sets the limit on an element, the rest is the body
///
/// Any split gives the same elements and error. Where serde_json reads an array, or one object in its
/// place, the elements are its own and it is whole; where it finds an array cut short, nothing fails.
pub fn json_array(data: &[u8]) {
    let (limit, body) = choice(data);
    let limit = if limit % 2 == 0 { LIMIT } else { usize::from(limit) };
    let whole = read(limit, &[body]);
    for reads in splits(body) {
        assert_eq!(read(limit, &reads), whole, "read in {reads:?}");
    }
    if limit != LIMIT {
        return;
    }
    let text = body.strip_prefix(MARK).unwrap_or(body);
    let elements = match serde_json::from_slice::<Vec<&RawValue>>(text) {
        Ok(elements) => elements,
        // In an escape it counts the bytes before it looks at them.
        Err(error) if error.is_eof() && text.trim_ascii_start().starts_with(b"[") && !holds(text, b"\\u") => {
            assert_eq!((whole.failure, whole.is_whole), (None, false), "it is cut short");
            return;
        }
        Err(_) => match serde_json::from_slice::<&RawValue>(text) {
            Ok(object) if object.get().starts_with('{') => vec![object],
            Ok(_) | Err(_) => return,
        },
    };
    let elements = elements.iter().map(|element| element.get().as_bytes().to_vec()).collect();
    assert_eq!(whole, Told { elements, is_whole: true, failure: None });
}

fn read(limit: usize, reads: &[&[u8]]) -> Told {
    let mut framer = Framer::new(limit);
    let mut told = Told::default();
    for read in reads {
        let mut input = *read;
        loop {
            match framer.next(input) {
                Ok((consumed, Some(event))) => {
                    let element = framer.bytes(input, event.data).to_vec();
                    assert!((1..=limit).contains(&element.len()), "an element of {} bytes", element.len());
                    told.elements.push(element);
                    input = &input[consumed..];
                }
                Ok((consumed, None)) => {
                    assert_eq!(consumed, input.len(), "without an event all of the input is used");
                    break;
                }
                Err(error) => {
                    assert_eq!(framer.next(input), Err(error), "a framer that has failed stays so");
                    told.failure = Some(error);
                    assert!(!framer.is_whole());
                    return told;
                }
            }
        }
    }
    told.is_whole = framer.is_whole();
    told
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
