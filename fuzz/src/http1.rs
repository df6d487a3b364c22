//! Bytes into the HTTP/1.1 response decoder.

mod oracle;

use http::{HeaderMap, Method};
use steadfast::http1::{End, Http1Error, Incomplete, Limits, Part, ResponseDecoder, ResponseHead};

use crate::reads::{choice, splits};
use oracle::{Answer, hyper};

/// All that a connection tells
#[derive(Debug, PartialEq, Eq)]
struct Told {
    interim: Vec<u16>,
    head: Option<ResponseHead>,
    body: Vec<u8>,
    end: Result<End, Http1Error>,
    /// Bytes behind the response
    behind: usize,
}

/// A connection: the first byte chooses the method and the limit on a head, the rest is what comes
///
/// Any split gives the same parts and end. Where hyper and this decoder both take it for HTTP, they
/// agree on whether the response is whole, and on what it says.
pub fn http1(data: &[u8]) {
    let (choice, bytes) = choice(data);
    let (method, limits) = chosen(choice);
    let whole = read(&method, limits, &[bytes]);
    for reads in splits(bytes) {
        assert_eq!(read(&method, limits, &reads), whole, "read in {reads:?}");
    }
    check_bounds(&whole, limits, bytes.len());
    // What follows a tunnel's head is no body, and hyper hands it over elsewhere.
    if method != Method::CONNECT {
        agree(&whole, hyper(&method, bytes));
    }
}

fn chosen(choice: u8) -> (Method, Limits) {
    let method = match choice % 4 {
        0 | 1 => Method::GET,
        2 => Method::HEAD,
        _ => Method::CONNECT,
    };
    let limits = match choice / 4 {
        0 => Limits::default(),
        few => Limits { max_head_bytes: usize::from(few) * 2 },
    };
    (method, limits)
}

fn read(method: &Method, limits: Limits, reads: &[&[u8]]) -> Told {
    let mut decoder = ResponseDecoder::new(method, limits);
    let (mut interim, mut head, mut body, mut end, mut behind) = (Vec::new(), None, Vec::new(), None, 0);
    'connection: for read in reads {
        let mut input = *read;
        loop {
            let (consumed, part) = match decoder.next(input) {
                Ok(next) => next,
                Err(error) => {
                    assert_eq!(decoder.next(input), Err(error), "a decoder that has failed stays so");
                    assert_eq!(decoder.eof(), Err(error), "a decoder that has failed stays so");
                    end = Some(Err(error));
                    break 'connection;
                }
            };
            match part {
                Some(Part::Interim(status)) => interim.push(status.as_u16()),
                Some(Part::Head(final_head)) => {
                    assert_eq!(head.replace(final_head), None, "one head");
                }
                Some(Part::Body(range)) => {
                    assert!(!range.is_empty() && end.is_none() && head.is_some());
                    body.extend_from_slice(&input[range]);
                }
                Some(Part::End(ended)) => assert_eq!(end.replace(Ok(ended)), None, "one end"),
                None if end.is_some() => {
                    assert_eq!(consumed, 0, "after the end nothing is used");
                    behind += input.len();
                    break;
                }
                None => {
                    assert_eq!(consumed, input.len(), "without a part all of the input is used");
                    break;
                }
            }
            input = &input[consumed..];
        }
    }
    let end = end.unwrap_or_else(|| decoder.eof());
    Told { interim, head, body, end, behind }
}

fn check_bounds(told: &Told, limits: Limits, came: usize) {
    assert!(told.body.len() + told.behind <= came);
    if let Some(head) = &told.head {
        // A field is held as its name and its value, both of which came.
        let held = |headers: &HeaderMap| -> usize {
            headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
        };
        assert!(held(&head.headers) + head.reason.len() <= limits.max_head_bytes);
    }
    assert!(told.end.is_err() || told.head.is_some(), "an end without a head");
}

/// Compares with hyper, where neither found the other's reasons to refuse
fn agree(told: &Told, other: Answer) {
    match (&told.end, other) {
        (Ok(end), Answer::Whole { status, body, trailers }) => {
            assert_eq!(told.head.as_ref().map(|head| head.status), Some(status));
            assert_eq!(told.body, body);
            assert_eq!(end.trailers, trailers);
        }
        (Ok(_), Answer::Cut) => panic!("hyper says that it is cut short: {told:?}"),
        (
            Err(Http1Error::Incomplete(Incomplete::Body { .. } | Incomplete::Chunked { .. })),
            Answer::Whole { .. },
        ) => {
            panic!("hyper says that it is whole: {told:?}")
        }
        (Err(_), Answer::Whole { .. } | Answer::Cut) | (_, Answer::Refused) => {}
    }
}
