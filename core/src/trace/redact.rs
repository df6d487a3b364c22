//! Credentials and cookies, out of what a trace holds.
//!
//! Every credential has a placeholder of the same length, and the call that is made from the trace takes
//! the placeholders for its credentials. So it blanks them where the recorded call blanked the real ones,
//! and its steps are the same.

/// The secrets of one call, each with its placeholder
#[derive(Default)]
pub(crate) struct Redactor {
    /// The longest first: one may be part of another
    secrets: Vec<Secret>,
    /// Whether a secret begins with that byte
    begins: Option<Box<[bool; 256]>>,
}

struct Secret {
    bytes: Vec<u8>,
    placeholder: String,
    /// As it stands in a JSON string; none where it is no text
    in_json: Option<String>,
}

impl Redactor {
    /// The most of a secret's beginning that may stand at the end of what came, as in errors
    const MAX_LEFT_BYTES: usize = 3;

    /// For these secrets and their placeholders, the longest first
    pub(crate) fn new(secrets: Vec<(Vec<u8>, String)>) -> Self {
        let mut redactor = Self::default();
        redactor.add(secrets);
        redactor
    }

    /// And for these
    pub(super) fn add(&mut self, secrets: Vec<(Vec<u8>, String)>) {
        for (bytes, placeholder) in secrets {
            if self.secrets.iter().any(|known| known.bytes == bytes) {
                continue;
            }
            if let Some(first) = bytes.first() {
                self.begins.get_or_insert_with(|| Box::new([false; 256]))[usize::from(*first)] = true;
            }
            let in_json = std::str::from_utf8(&bytes).ok().map(|text| {
                let quoted = serde_json::to_string(text).expect("a string is JSON");
                quoted[1..quoted.len() - 1].to_owned()
            });
            let at = self.secrets.partition_point(|known| known.bytes.len() >= bytes.len());
            self.secrets.insert(at, Secret { bytes, placeholder, in_json });
        }
    }

    /// Replaces the secrets in `window` from `from` on, and returns how far that is certain
    ///
    /// What is left could be the beginning of a secret. How the bytes were cut makes no difference.
    pub(crate) fn scan(&self, window: &mut [u8], from: usize) -> usize {
        let Some(begins) = &self.begins else { return window.len() };
        let mut at = from;
        while at < window.len() {
            let rest = &window[at..];
            if !begins[usize::from(rest[0])] {
                at += 1;
            } else if self.secrets.iter().any(|secret| is_beginning(rest, &secret.bytes)) {
                return at;
            } else if let Some(secret) = self.secrets.iter().find(|secret| rest.starts_with(&secret.bytes)) {
                window[at..at + secret.bytes.len()].copy_from_slice(secret.placeholder.as_bytes());
                at += secret.bytes.len();
            } else {
                at += 1;
            }
        }
        at
    }

    /// Replaces the beginning of a secret that `left` is, after which nothing more comes
    pub(crate) fn settle(&self, left: &mut [u8]) {
        let secret = self.secrets.iter().find(|secret| secret.bytes.starts_with(left));
        if let Some(secret) = secret.filter(|_| left.len() > Self::MAX_LEFT_BYTES) {
            left.copy_from_slice(&secret.placeholder.as_bytes()[..left.len()]);
        }
    }

    /// Replaces the secrets in a line of JSON, but for the trace's own words: a key may be one of them
    pub(super) fn line(&self, line: &mut String) {
        let in_json = || self.secrets.iter().filter_map(|secret| secret.in_json.as_deref());
        if !in_json().any(|in_json| line.contains(in_json)) {
            return;
        }
        let (mut redacted, mut rest, mut key) = (String::with_capacity(line.len()), line.as_str(), "");
        while let Some(opens) = rest.find('"') {
            let (before, behind) = rest.split_at(opens + 1);
            let (text, after) = behind.split_at(end_of_string(behind));
            redacted.push_str(before);
            if after.starts_with("\":") {
                key = text;
                redacted.push_str(text);
            } else if OWN_WORDS.contains(&key) {
                redacted.push_str(text);
            } else {
                redacted.push_str(&self.text(text));
            }
            let (quote, after) = after.split_at(after.len().min(1));
            redacted.push_str(quote);
            rest = after;
        }
        redacted.push_str(rest);
        *line = redacted;
    }

    /// Replaces the secrets in the text of a JSON string, or of a URL
    pub(crate) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for Secret { in_json, placeholder, .. } in &self.secrets {
            if let Some(in_json) = in_json.as_deref().filter(|in_json| text.contains(in_json)) {
                text = text.replace(in_json, placeholder);
            }
        }
        text
    }
}

/// The keys of a trace whose values are words of its own, or made of such: whatever an app has for its key,
/// a server on the same machine often has no use for it and `openai` or `ollama` will do
///
/// The kind of an error is a provider's word, and the call has blanked it.
const OWN_WORDS: &[&str] = &[
    "event", "step", "bodies", "method", "url", "shape", "dialect", "retries", "ended", "stage", "kind",
    "mode", "timer", "result", "phase", "setting", "billing", "how", "notes",
];

/// Where the text of a JSON string ends, its opening quote being behind us
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    let ends = |byte: u8| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    };
    text.bytes().position(ends).unwrap_or(text.len())
}

fn is_beginning(bytes: &[u8], secret: &[u8]) -> bool {
    bytes.len() < secret.len() && secret.starts_with(bytes)
}

/// What stands in a trace for `secret`: as long as that, however a server may spell it
///
/// It is fit for a header field, a query and a JSON string, and like nothing that a server says by
/// itself. A slash stays and other reserved characters become a plus, for a server may echo these in
/// more than one byte. Those of another number are no part of it.
pub(crate) fn placeholder(secret: &[u8], number: usize) -> String {
    const LETTERS: &[u8] = b"xabcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let mut unreserved = ['~', char::from(LETTERS[number % LETTERS.len()])].into_iter().cycle();
    let placeholder = secret.iter().map(|byte| match byte {
        b'/' => '/',
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            unreserved.next().expect("it goes round")
        }
        _ => '+',
    });
    placeholder.collect()
}

/// Finds the values of `Set-Cookie` fields in the bytes of a connection, however they are cut
#[derive(Default)]
pub(super) struct Cookies(Place);

#[derive(Clone, Copy)]
enum Place {
    /// So many bytes of the line are those of the field's name
    Name(usize),
    Value,
    /// A line that continues a value, or does not, as its first byte says
    AfterValue,
    /// Elsewhere in a line
    Other,
}

impl Default for Place {
    fn default() -> Self {
        Self::Name(0)
    }
}

impl Cookies {
    const NAME: &[u8] = b"set-cookie:";

    /// Blanks what is such a value in the bytes that come next
    pub(super) fn blank(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while let Some(byte) = bytes.get_mut(at) {
            at += 1;
            self.0 = match (self.0, *byte) {
                (Place::Value, b'\n') => Place::AfterValue,
                (_, b'\n') => Place::Name(0),
                (Place::AfterValue, b' ' | b'\t') => Place::Value,
                (Place::Name(_) | Place::AfterValue, byte) => {
                    let read = if let Place::Name(read) = self.0 { read } else { 0 };
                    match byte.to_ascii_lowercase() == Self::NAME[read] {
                        true if read + 1 == Self::NAME.len() => Place::Value,
                        true => Place::Name(read + 1),
                        false => Place::Other,
                    }
                }
                (Place::Value, _) => {
                    if !byte.is_ascii_whitespace() {
                        *byte = b'x';
                    }
                    Place::Value
                }
                (Place::Other, _) => {
                    at += memchr::memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at);
                    Place::Other
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor(secrets: &[&str]) -> Redactor {
        let mut secrets: Vec<_> =
            secrets.iter().map(|it| (it.as_bytes().to_vec(), placeholder(it.as_bytes(), 0))).collect();
        secrets.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        Redactor::new(secrets)
    }

    /// What becomes of `text` read in pieces that end at these places
    fn redacted(redactor: &Redactor, text: &str, cuts: &[usize]) -> String {
        let (mut window, mut certain, mut from) = (Vec::new(), 0, 0);
        for cut in cuts.iter().copied().chain([text.len()]) {
            window.extend_from_slice(&text.as_bytes()[from..cut]);
            certain = redactor.scan(&mut window, certain);
            from = cut;
        }
        redactor.settle(&mut window[certain..]);
        String::from_utf8(window).unwrap()
    }

    #[test]
    fn no_cut_changes_what_is_redacted() {
        let redactor = redactor(&["sk-abcdef", "abcdef", "sk-abcdefgh"]);
        for (text, expected) in [
            ("got sk-abcdef.", "got ~x~x~x~x~."),
            ("got sk-abcdefgh.", "got ~x~x~x~x~x~."),
            ("got sk-abcdefg.", "got ~x~x~x~x~g."),
            ("sk-absk-abcdefabcdef", "sk-ab~x~x~x~x~~x~x~x"),
            ("abcde abcdef", "abcde ~x~x~x"),
            ("ends in sk-", "ends in sk-"),
            ("ends in sk-a", "ends in ~x~x"),
        ] {
            assert_eq!(redacted(&redactor, text, &[]), expected);
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    assert_eq!(redacted(&redactor, text, &[first, second]), expected, "{first} {second}");
                }
            }
        }
    }

    #[test]
    fn a_placeholder_is_as_long_in_every_spelling() {
        for secret in ["sk-ab_c.d~e", "a/b+c=d&e/", "q\"uo\\te", "sk-ü/é"] {
            let placeholder = placeholder(secret.as_bytes(), 0);
            assert_eq!(placeholder.len(), secret.len());
            assert_eq!(placeholder.replace('/', "\\/").len(), secret.replace('/', "\\/").len());
            assert!(!placeholder.contains(['"', '\\']));
        }
        assert_eq!(placeholder(b"sk/a+b", 0), "~x/~+x");
    }

    #[test]
    fn in_a_line_of_json() {
        let redactor = redactor(&["q\"uo\\te"]);
        let mut line = serde_json::to_string("a q\"uo\\te b").unwrap();
        redactor.line(&mut line);
        assert_eq!(line, r#""a ~+x~+x~ b""#);
    }

    #[test]
    fn the_words_of_the_trace_stay() {
        let redactor = redactor(&["openai", "stream"]);
        let mut line = r#"{"dialect":"openai-chat","url":"http://openai/v1","stream":1,"text":"\"openai\" \\","id":"stream"}"#.to_owned();
        redactor.line(&mut line);
        assert_eq!(
            line,
            r#"{"dialect":"openai-chat","url":"http://openai/v1","stream":1,"text":"\"~x~x~x\" \\","id":"~x~x~x"}"#
        );
    }

    #[test]
    fn cookies_are_blanked_at_every_cut() {
        let text = "HTTP/1.1 200 OK\r\nSet-Cookie: a=b; c\r\n d\r\nX: set-cookie: y\r\nset-cookie:e\n\r\nset";
        let expected =
            "HTTP/1.1 200 OK\r\nSet-Cookie: xxxx x\r\n x\r\nX: set-cookie: y\r\nset-cookie:x\n\r\nset";
        for cut in 0..=text.len() {
            let (mut bytes, mut cookies) = (text.as_bytes().to_vec(), Cookies::default());
            let (before, after) = bytes.split_at_mut(cut);
            cookies.blank(before);
            cookies.blank(after);
            assert_eq!(String::from_utf8(bytes).unwrap(), expected, "cut at {cut}");
        }
    }
}
