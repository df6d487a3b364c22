//! Bytes into the HTTP/1.1 request decoder, and heads passed on.

use std::num::NonZeroUsize;

use steadfast::http1::{
    BodyLength, CHUNK_END, ChunkHead, ForwardedRequest, IncomingRequest, LAST_CHUNK, RequestDecoder,
    RequestFault, RequestLimits, RequestPart,
};

use crate::reads::{choice, splits};

/// The host that requests are passed on to
const HOST: &str = "up.test:443";

/// The fields that are never passed on, beside those that `Connection` names and `Proxy-` begins
const OF_ONE_CONNECTION: [&str; 9] = [
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "host",
    "content-length",
];

/// All that a connection tells
#[derive(Debug, PartialEq, Eq)]
struct Told {
    requests: Vec<Request>,
    end: Result<(), RequestFault>,
}

#[derive(Debug, PartialEq, Eq)]
struct Request {
    head: IncomingRequest,
    body: Vec<u8>,
    ended: bool,
}

/// A connection: the first byte chooses the limits, the rest is what comes
///
/// Any split gives the same requests and the same end. No byte that could end a line is in what was taken.
/// A request that is passed on reads as the same request, less the fields that belong to one connection,
/// and nothing comes behind it.
pub fn http1_request(data: &[u8]) {
    let (choice, bytes) = choice(data);
    let limits = chosen(choice);
    let whole = read(limits, &[bytes]);
    for reads in splits(bytes) {
        assert_eq!(read(limits, &reads), whole, "read in {reads:?}");
    }
    for request in &whole.requests {
        check(request, limits);
        if request.ended {
            passes_on(request);
        }
    }
}

fn chosen(choice: u8) -> RequestLimits {
    match choice {
        0..128 => RequestLimits::default(),
        few => RequestLimits {
            max_head_bytes: usize::from(few),
            max_fields: usize::from(few % 8),
            max_target_bytes: usize::from(few % 32),
        },
    }
}

fn read(limits: RequestLimits, reads: &[&[u8]]) -> Told {
    let mut decoder = RequestDecoder::new(limits);
    let mut requests: Vec<Request> = Vec::new();
    for read in reads {
        let mut input = *read;
        loop {
            let (consumed, part) = match decoder.next(input) {
                Ok(next) => next,
                Err(fault) => {
                    assert_eq!(decoder.next(input), Err(fault), "a decoder that has failed stays so");
                    assert_eq!(decoder.eof(), Err(fault), "a decoder that has failed stays so");
                    assert!(fault.status().is_client_error() || fault.status().is_server_error());
                    return Told { requests, end: Err(fault) };
                }
            };
            assert!(decoder.held() <= limits.max_head_bytes.max(steadfast::http1::MAX_TRAILER_BYTES));
            match part {
                Some(RequestPart::Head(head)) => {
                    assert!(requests.last().is_none_or(|last| last.ended), "one at a time");
                    requests.push(Request { head, body: Vec::new(), ended: false });
                }
                Some(RequestPart::Body(range)) => {
                    let last = requests.last_mut().expect("a body has a head");
                    assert!(!range.is_empty() && !last.ended);
                    last.body.extend_from_slice(&input[range]);
                }
                Some(RequestPart::End) => {
                    let last = requests.last_mut().expect("an end has a head");
                    assert!(!std::mem::replace(&mut last.ended, true), "one end");
                    assert_eq!(decoder.next(&input[consumed..]), Ok((0, None)), "the rest is the next one's");
                    decoder.again();
                }
                None => {
                    assert_eq!(consumed, input.len(), "without a part all of the input is used");
                    break;
                }
            }
            input = &input[consumed..];
        }
    }
    Told { requests, end: decoder.eof() }
}

/// What holds for every request that is taken
fn check(request: &Request, limits: RequestLimits) {
    let head = &request.head;
    assert!(head.target.starts_with('/') && head.target.len() <= limits.max_target_bytes);
    assert!(head.target.bytes().all(|byte| byte.is_ascii_graphic()));
    assert!(head.fields.len() <= limits.max_fields);
    let held: usize = head.fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    assert!(held + head.target.len() <= limits.max_head_bytes);
    for (name, value) in head.fields.iter() {
        assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':'));
        assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
    }
    assert!(head.fields.get_all("host").count() <= 1);
    let framings = head.fields.get_all("content-length").chain(head.fields.get_all("transfer-encoding"));
    assert_eq!(framings.count(), usize::from(head.body != BodyLength::None));
    match head.body {
        BodyLength::Length(length) if request.ended => assert_eq!(request.body.len() as u64, length),
        BodyLength::None => assert!(request.body.is_empty()),
        BodyLength::Length(_) | BodyLength::Chunked => {}
    }
}

/// Passes a request on, and reads it again
fn passes_on(request: &Request) {
    let head = &request.head;
    let mut sent = Vec::new();
    let forwarded = ForwardedRequest {
        method: &head.method,
        target: &head.target,
        host: HOST,
        fields: &head.fields,
        replaced: &[],
        dropped: &[],
        body: head.body,
    };
    forwarded.encode(&mut sent).expect("what was read can be sent");
    match (head.body, NonZeroUsize::new(request.body.len())) {
        (BodyLength::Chunked, Some(length)) => {
            for part in [&ChunkHead::new(length), &request.body[..], CHUNK_END, LAST_CHUNK] {
                sent.extend_from_slice(part);
            }
        }
        (BodyLength::Chunked, None) => sent.extend_from_slice(LAST_CHUNK),
        (BodyLength::None | BodyLength::Length(_), _) => sent.extend_from_slice(&request.body),
    }
    // A head grows by what is written afresh.
    let limits = RequestLimits {
        max_head_bytes: sent.len(),
        max_fields: head.fields.len() + 2,
        max_target_bytes: head.target.len(),
    };
    let again = read(limits, &[&sent]);
    assert_eq!(again.end, Ok(()));
    let [again] = &again.requests[..] else { panic!("passed on as {} requests", again.requests.len()) };
    assert!(again.ended);
    assert_eq!(again.head.host(), Some(HOST));
    assert_eq!(
        (&again.head.method, &again.head.target, again.head.body, &again.body),
        (&head.method, &head.target, head.body, &request.body)
    );
    let named: Vec<String> = head
        .fields
        .get_all("connection")
        .flat_map(|value| value.split(|&byte| byte == b','))
        .map(|option| String::from_utf8_lossy(option.trim_ascii()).to_ascii_lowercase())
        .collect();
    let passed = |name: &str| {
        let name = name.to_ascii_lowercase();
        !OF_ONE_CONNECTION.contains(&&name[..]) && !name.starts_with("proxy-") && !named.contains(&name)
    };
    let framing = ["host", "content-length", "transfer-encoding"];
    let afresh = |name: &str| framing.iter().any(|framing| name.eq_ignore_ascii_case(framing));
    let expected: Vec<_> = head.fields.iter().filter(|(name, _)| passed(name)).collect();
    let came: Vec<_> = again.head.fields.iter().filter(|(name, _)| !afresh(name)).collect();
    assert_eq!(came, expected);
}
