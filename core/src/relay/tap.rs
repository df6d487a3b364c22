//! What goes by, as it is recorded: bounded, and without credentials (rule RLY-4).

use std::collections::VecDeque;

use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::event::Tap;
use crate::call::{Credentials, names_credential};
use crate::http1::Fields;
use crate::percent;
use crate::trace::Redactor;

/// How much of one exchange is recorded, in bytes of its bodies; the defaults are those of rule RLY-4
///
/// What lies beyond goes through all the same, and is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Of the request; 32 MiB
    pub request: u64,
    /// Of the beginning of the answer; 4 MiB
    pub answer_first: u64,
    /// Of the end of the answer, behind that; 256 KiB. Held until the exchange is over
    pub answer_last: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self { request: 32 << 20, answer_first: 4 << 20, answer_last: 256 << 10 }
    }
}

/// Whose body bytes are of
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The app's
    Request,
    /// The provider's
    Answer,
}

/// A piece of a record
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Captured<'c> {
    /// The request, up to its body
    Request {
        /// The method
        method: String,
        /// The path and the query, in which the values of parameters that are credentials are blanked
        target: String,
        /// The header fields, without credentials
        fields: Vec<(String, String)>,
    },
    /// The provider's answer, up to its body
    Answer {
        /// Its status
        status: StatusCode,
        /// The header fields, without credentials
        fields: Vec<(String, String)>,
    },
    /// Bytes of a body
    Body {
        /// Whose
        side: Side,
        /// Where in the body they begin
        offset: u64,
        /// In which a credential of the request is replaced by as many bytes that mean nothing
        bytes: &'c [u8],
    },
}

/// Makes the record of one exchange of what goes by
///
/// What it holds is the end of the answer, up to [`Caps::answer_last`], and fewer bytes of either body than
/// the longest credential has, which may be the beginning of one.
pub struct Capture {
    caps: Caps,
    credentials: Credentials,
    redactor: Redactor,
    request: Passed,
    answer: Passed,
    /// The last bytes of an answer that is past its first part
    last: VecDeque<u8>,
}

/// How many bytes of a body came, and how many are in no record because a cap is reached
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// All that came
    pub came: u64,
    /// What was left out
    pub cut: u64,
}

/// A body that goes by
#[derive(Default)]
struct Passed {
    came: u64,
    /// How much of it was searched for credentials, and handed on
    certain: u64,
    /// What was not
    held: Vec<u8>,
}

impl Capture {
    /// What stands in the place of a credential, but in bodies
    pub const BLANK: &str = "[credential]";

    /// The record of an exchange that begins
    ///
    /// `keys` are header values that go to the provider in the place of the app's own credentials: it may
    /// echo them.
    pub fn new<'k>(caps: Caps, keys: impl IntoIterator<Item = &'k HeaderValue>) -> Self {
        let mut credentials = Credentials::default();
        keys.into_iter().for_each(|key| credentials.add(key));
        Self {
            caps,
            redactor: Redactor::new(credentials.placeholders()),
            credentials,
            request: Passed::default(),
            answer: Passed::default(),
            last: VecDeque::new(),
        }
    }

    /// Takes in what goes by; `record` gets what is to be kept of it, at once
    pub fn tap(&mut self, tap: &Tap<'_>, record: &mut impl FnMut(Captured<'_>)) {
        match tap {
            Tap::Request(request) => {
                self.credentials.add_all(credentials_of(&request.fields, &request.target));
                self.redactor = Redactor::new(self.credentials.placeholders());
                record(Captured::Request {
                    method: request.method.to_string(),
                    target: self.blank_target(&request.target),
                    fields: self.blank_fields(&request.fields),
                });
            }
            Tap::Answer(status, fields) => {
                record(Captured::Answer { status: *status, fields: self.blank_fields(fields) });
            }
            Tap::RequestBody(bytes) => self.body(Side::Request, bytes, record),
            Tap::AnswerBody(bytes) => self.body(Side::Answer, bytes, record),
        }
    }

    /// The exchange is over: `record` gets what was held; the counts of the request's body and the answer's
    pub fn finish(mut self, record: &mut impl FnMut(Captured<'_>)) -> (Counted, Counted) {
        for side in [Side::Request, Side::Answer] {
            let mut held = std::mem::take(&mut self.passed(side).held);
            self.redactor.settle(&mut held);
            self.keep(side, &held, record);
        }
        let last = Vec::from(self.last);
        let offset = self.answer.came - last.len() as u64;
        if !last.is_empty() {
            record(Captured::Body { side: Side::Answer, offset, bytes: &last });
        }
        let request_cut = self.request.came.saturating_sub(self.caps.request);
        let answer_cut = offset.saturating_sub(self.caps.answer_first);
        (
            Counted { came: self.request.came, cut: request_cut },
            Counted { came: self.answer.came, cut: answer_cut },
        )
    }

    /// Bytes held
    pub fn held(&self) -> usize {
        self.request.held.len() + self.answer.held.len() + self.last.len()
    }

    fn body(&mut self, side: Side, bytes: &[u8], record: &mut impl FnMut(Captured<'_>)) {
        let passed = self.passed(side);
        passed.came += bytes.len() as u64;
        let mut window = std::mem::take(&mut passed.held);
        window.extend_from_slice(bytes);
        let certain = self.redactor.scan(&mut window, 0);
        self.keep(side, &window[..certain], record);
        window.drain(..certain);
        self.passed(side).held = window;
    }

    /// Hands on what of these bytes the caps allow
    fn keep(&mut self, side: Side, bytes: &[u8], record: &mut impl FnMut(Captured<'_>)) {
        let cap = match side {
            Side::Request => self.caps.request,
            Side::Answer => self.caps.answer_first,
        };
        let passed = self.passed(side);
        let offset = passed.certain;
        passed.certain += bytes.len() as u64;
        let fits = usize::try_from(cap.saturating_sub(offset)).unwrap_or(usize::MAX).min(bytes.len());
        let (kept, beyond) = bytes.split_at(fits);
        if !kept.is_empty() {
            record(Captured::Body { side, offset, bytes: kept });
        }
        if side == Side::Answer {
            let most = self.caps.answer_last;
            let newest = &beyond[beyond.len().saturating_sub(most)..];
            let gone = (self.last.len() + newest.len()).saturating_sub(most);
            self.last.drain(..gone);
            self.last.extend(newest);
        }
    }

    fn passed(&mut self, side: Side) -> &mut Passed {
        match side {
            Side::Request => &mut self.request,
            Side::Answer => &mut self.answer,
        }
    }

    /// A target without the values of parameters that are credentials
    fn blank_target(&self, target: &str) -> String {
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let mut blanked = path.to_owned();
        for (at, pair) in query.iter().flat_map(|query| query.split('&')).enumerate() {
            blanked.push(if at == 0 { '?' } else { '&' });
            match pair.split_once('=') {
                Some((name, _)) if names_credential(&String::from_utf8_lossy(&percent::decode(name))) => {
                    blanked.push_str(name);
                    blanked.push('=');
                    blanked.push_str(Self::BLANK);
                }
                Some(_) | None => blanked.push_str(pair),
            }
        }
        self.credentials.blank(&mut blanked);
        blanked
    }

    /// Names and values, in which credentials are blanked
    fn blank_fields(&self, fields: &Fields) -> Vec<(String, String)> {
        let blank = |(name, value): (&str, &[u8])| {
            let value = match names_credential(name) {
                true => Self::BLANK.to_owned(),
                false => {
                    let mut value = String::from_utf8_lossy(value).into_owned();
                    self.credentials.blank(&mut value);
                    value
                }
            };
            (name.to_owned(), value)
        };
        fields.iter().map(blank).collect()
    }
}

/// The credentials that a request brings
fn credentials_of(fields: &Fields, target: &str) -> Credentials {
    let named = |(name, value): (&str, &[u8])| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::from_bytes(value).ok()?))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in fields.iter().filter(|(name, _)| names_credential(name)).filter_map(named) {
        // More fields than a map holds are more than a head has room for.
        _ = headers.try_append(name, value);
    }
    let target = PathAndQuery::try_from(target).unwrap_or(PathAndQuery::from_static("/"));
    Credentials::of(&headers, &target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{BodyLength, IncomingRequest};

    const SMALL: Caps = Caps { request: 8, answer_first: 6, answer_last: 4 };

    fn request(target: &str, fields: &[(&str, &str)]) -> IncomingRequest {
        let mut held = Fields::default();
        fields.iter().for_each(|(name, value)| held.push(name, value.as_bytes()));
        IncomingRequest {
            method: http::Method::POST,
            target: target.to_owned(),
            version: http::Version::HTTP_11,
            fields: held,
            body: BodyLength::Chunked,
            keeps_alive: true,
            expects_continue: false,
        }
    }

    /// What is recorded of one body, piece by piece, with its count
    fn body(caps: Caps, side: Side, pieces: &[&[u8]]) -> (Vec<(u64, Vec<u8>)>, Counted) {
        let mut kept = Vec::new();
        let mut record = |captured: Captured<'_>| {
            let Captured::Body { side: of, offset, bytes } = captured else { panic!("{captured:?}") };
            assert_eq!(of, side);
            kept.push((offset, bytes.to_vec()));
        };
        let mut capture = Capture::new(caps, []);
        for &piece in pieces {
            let tap = match side {
                Side::Request => Tap::RequestBody(piece),
                Side::Answer => Tap::AnswerBody(piece),
            };
            capture.tap(&tap, &mut record);
            assert!(capture.held() <= caps.answer_last, "{}", capture.held());
        }
        let (request, answer) = capture.finish(&mut record);
        (kept, if side == Side::Request { request } else { answer })
    }

    #[test]
    fn of_a_request_the_beginning_is_kept() {
        let (kept, counted) = body(SMALL, Side::Request, &[b"abcde", b"fghij", b"k"]);
        assert_eq!(kept, [(0, b"abcde".to_vec()), (5, b"fgh".to_vec())]);
        assert_eq!(counted, Counted { came: 11, cut: 3 });
    }

    #[test]
    fn of_an_answer_both_ends_are_kept_however_it_comes() {
        let text = b"0123456789abcdefghij";
        for length in 0..=text.len() {
            for size in 1..=length.max(1) {
                let pieces: Vec<&[u8]> = text[..length].chunks(size).collect();
                let (kept, counted) = body(SMALL, Side::Answer, &pieces);
                let mut seen = vec![None; length];
                for (offset, bytes) in kept {
                    for (at, byte) in bytes.into_iter().enumerate() {
                        assert_eq!(seen[offset as usize + at].replace(byte), None, "{length} by {size}");
                    }
                }
                for (at, byte) in seen.iter().enumerate() {
                    let is_kept = at < 6 || at + 4 >= length;
                    assert_eq!(*byte, is_kept.then_some(text[at]), "{at} of {length} by {size}");
                }
                let cut = length.saturating_sub(10) as u64;
                assert_eq!(counted, Counted { came: length as u64, cut }, "{length} by {size}");
            }
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_rule() {
        let mebibyte = vec![b'a'; 1 << 20];
        let (_, counted) = body(Caps::default(), Side::Request, &[&mebibyte[..]; 33]);
        assert_eq!(counted, Counted { came: 33 << 20, cut: 1 << 20 });
        let (_, counted) = body(Caps::default(), Side::Answer, &[&mebibyte[..]; 5]);
        assert_eq!(counted, Counted { came: 5 << 20, cut: (1 << 20) - (256 << 10) });
    }

    #[test]
    fn no_credential_is_in_a_head() {
        let mut capture = Capture::new(Caps::default(), []);
        let asked = request(
            "/openai/v1/x?alt=sse&key=goog-7890&api%5Fkey=sk-abcdef&last",
            &[
                ("Authorization", "Bearer sk-abcdef"),
                ("Cookie", "a=b"),
                ("X-Other", "of sk-abcdef"),
                ("max_tokens", "7"),
            ],
        );
        let mut heads = Vec::new();
        let mut record = |captured: Captured<'_>| match captured {
            Captured::Request { target, fields, .. } => heads.push((target, fields)),
            Captured::Answer { fields, .. } => heads.push((String::new(), fields)),
            Captured::Body { .. } => panic!("{captured:?}"),
        };
        capture.tap(&Tap::Request(&asked), &mut record);
        let mut answered = Fields::default();
        answered.push("Set-Cookie", b"session=1");
        answered.push("Location", b"/?key=goog-7890");
        capture.tap(&Tap::Answer(StatusCode::OK, &answered), &mut record);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(heads[0].0, "/openai/v1/x?alt=sse&key=[credential]&api%5Fkey=[credential]&last");
        let expected = [
            pair("Authorization", "[credential]"),
            pair("Cookie", "[credential]"),
            pair("X-Other", "of [credential]"),
            pair("max_tokens", "7"),
        ];
        assert_eq!(heads[0].1, expected);
        assert_eq!(heads[1].1, [pair("Set-Cookie", "[credential]"), pair("Location", "/?key=[credential]")]);
    }

    #[test]
    fn no_credential_is_in_a_body_however_it_is_cut() {
        let text = b"bad key sk-abcdef, and relay-key-1 too; sk-abcde";
        let key = HeaderValue::from_static("Bearer relay-key-1");
        for size in 1..=text.len() {
            let mut capture = Capture::new(Caps::default(), [&key]);
            let mut kept = Vec::new();
            let mut record = |captured: Captured<'_>| {
                if let Captured::Body { offset, bytes, .. } = captured {
                    assert_eq!(offset, kept.len() as u64);
                    kept.extend_from_slice(bytes);
                }
            };
            let asked = request("/", &[("authorization", "Bearer sk-abcdef")]);
            capture.tap(&Tap::Request(&asked), &mut record);
            for piece in text.chunks(size) {
                capture.tap(&Tap::AnswerBody(piece), &mut record);
            }
            capture.finish(&mut record);
            let kept = String::from_utf8(kept).unwrap();
            assert_eq!(kept.len(), text.len());
            for part in ["sk-abc", "relay-key"] {
                assert!(!kept.contains(part), "{size}: {kept}");
            }
            assert!(kept.starts_with("bad key ") && kept.contains(", and "), "{kept}");
        }
    }
}
