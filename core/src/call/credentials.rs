//! Credentials: known by their place in the request, and blanked wherever a server echoes them.

use std::borrow::Cow;
use std::fmt;

use http::header::{self, HeaderName};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue};

use crate::percent;
use crate::trace::placeholder;

/// Whether a header field of that name carries a credential
pub(super) fn is_credential(name: &HeaderName) -> bool {
    names_credential(name.as_str())
}

/// Whether a name, of a header field or of a query parameter, is that of a credential
///
/// Every gateway has names of its own, so a part of the name tells: a value too many that is blanked does
/// less harm than one too few.
pub(crate) fn names_credential(name: &str) -> bool {
    /// Wherever they stand in the name
    const PARTS: [&str; 10] = [
        "auth",
        "key",
        "token",
        "secret",
        "cookie",
        "signature",
        "password",
        "passphrase",
        "credential",
        "jwt",
    ];
    /// Only by themselves: `design` is none
    const WORDS: [&str; 2] = ["sig", "passwd"];
    /// What has such a part in it and is none: an idempotency key is what one looks for in a provider's
    /// log, and `x-portkey-provider` has an ordinary word for its value
    const HARMLESS: [&str; 2] = ["idempotency-key", "portkey"];
    let name = name.to_ascii_lowercase();
    let mut name = HARMLESS.iter().fold(name, |name, harmless| name.replace(harmless, ""));
    if counts_tokens(&name) {
        name = name.replace("tokens", "");
    }
    PARTS.iter().any(|part| name.contains(part)) || words(&name).any(|word| WORDS.contains(&word))
}

/// Whether the tokens of a name are those of a model, and so its value is a number
fn counts_tokens(name: &str) -> bool {
    const COUNTED: [&str; 20] = [
        "max",
        "min",
        "limit",
        "ratelimit",
        "remaining",
        "reset",
        "used",
        "usage",
        "count",
        "num",
        "total",
        "budget",
        "input",
        "output",
        "prompt",
        "completion",
        "reasoning",
        "thinking",
        "cache",
        "cached",
    ];
    words(name).any(|word| COUNTED.contains(&word.strip_suffix("tokens").unwrap_or(word)))
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|char: char| !char.is_ascii_alphanumeric())
}

/// The credentials that one request carries, the longest first: one may be part of another
#[derive(Clone, Default)]
pub(crate) struct Credentials(Vec<Vec<u8>>);

impl Credentials {
    /// Shorter ones would blank ordinary words
    const MIN_BYTES: usize = 6;
    /// The most of a credential that may stand at the end of a text that was cut
    const MAX_LEFT_BYTES: usize = 3;

    /// The credentials in header fields, and in query parameters whose name says so
    pub(crate) fn of(headers: &HeaderMap, target: &PathAndQuery) -> Self {
        let in_headers = headers.iter().filter(|(name, _)| is_credential(name)).flat_map(|(name, value)| {
            let value = value.as_bytes();
            match *name {
                // A value may have further equal signs: Base64 ends in them.
                header::COOKIE => value
                    .split(|&byte| byte == b';')
                    .map(|pair| pair.splitn(2, |&byte| byte == b'=').last().unwrap_or(pair).to_vec())
                    .collect(),
                // "Bearer sk-…": the scheme is no secret
                _ => vec![after_space(value).to_vec()],
            }
        });
        let in_query = target
            .query()
            .unwrap_or("")
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .filter(|(name, _)| names_credential(&String::from_utf8_lossy(&percent::decode(name))))
            .flat_map(|(_, value)| [value.as_bytes().to_vec(), percent::decode(value)]);
        let mut credentials = Self::default();
        in_headers.chain(in_query).for_each(|secret| credentials.hold(&secret));
        credentials
    }

    /// The credentials in header fields that were made for an attempt
    pub(super) fn of_fields(headers: &HeaderMap) -> Self {
        Self::of(headers, &PathAndQuery::from_static("/"))
    }

    /// Those of another set as well
    pub(crate) fn add_all(&mut self, other: Self) {
        other.0.into_iter().for_each(|spelling| self.insert(spelling));
    }

    /// The credential in one more header field's value
    pub(crate) fn add(&mut self, value: &HeaderValue) {
        self.hold(after_space(value.as_bytes()));
    }

    /// Takes in a secret, in each spelling in which a server may echo it
    fn hold(&mut self, secret: &[u8]) {
        if secret.len() < Self::MIN_BYTES {
            return;
        }
        for reading in readings(secret) {
            spellings(&reading, &reading).into_iter().for_each(|spelling| self.insert(spelling));
        }
    }

    fn insert(&mut self, spelling: Vec<u8>) {
        let at = self.0.partition_point(|known| known.len() > spelling.len());
        if !self.0.contains(&spelling) {
            self.0.insert(at, spelling);
        }
    }

    /// Each spelling and what stands for it in a trace, the longest first
    ///
    /// What stands for a credential in another spelling is that of the credential, in this spelling.
    pub(crate) fn placeholders(&self) -> Vec<(Vec<u8>, String)> {
        let of = |number: usize, known: &Vec<u8>| {
            let spelled = self.0.iter().enumerate().filter(|(_, plain)| *plain != known).find_map(|of| {
                let (number, plain) = of;
                let how = spellings(plain, plain).iter().position(|spelling| spelling == known)?;
                Some(spellings(plain, placeholder(plain, number).as_bytes()).swap_remove(how))
            });
            let spelled = spelled.filter(|spelled| spelled.len() == known.len());
            spelled.map_or_else(
                || placeholder(known, number),
                |spelled| String::from_utf8(spelled).expect("a placeholder is ASCII, however it is spelled"),
            )
        };
        self.0.iter().enumerate().map(|(number, known)| (known.clone(), of(number, known))).collect()
    }

    /// Placeholders in the place of credentials: a call blanks them in the same way
    pub(super) fn of_placeholders(placeholders: &[String]) -> Self {
        let mut credentials = Self::default();
        let blankable = placeholders.iter().filter(|placeholder| placeholder.len() >= Self::MIN_BYTES);
        blankable.for_each(|placeholder| credentials.insert(placeholder.clone().into()));
        credentials
    }

    /// Blanks every credential in `text`
    pub(crate) fn blank(&self, text: &mut String) {
        for secret in self.as_text().filter(|secret| text.contains(&**secret)).collect::<Vec<_>>() {
            *text = text.replace(&*secret, Self::BLANK);
        }
    }

    /// As [`Credentials::blank`], for a text that may have been cut inside a credential
    pub(super) fn blank_cut(&self, text: &mut String) {
        self.blank(text);
        // What stands for the first bytes of a character that was cut
        let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
        // Of a text whole characters are left, for it ends with them.
        let left =
            self.as_text().filter_map(|secret| left_at_the_end(secret.as_bytes(), whole.as_bytes())).max();
        if let Some(left) = left {
            text.truncate(whole.len() - left);
            text.push_str(Self::BLANK);
        }
    }

    /// Each spelling as it is in a text, whose bytes are all UTF-8
    fn as_text(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.0.iter().map(|secret| String::from_utf8_lossy(secret))
    }

    /// Blanks every credential in `bytes`, which may have been cut inside one if `cut`
    pub(super) fn blank_bytes(&self, bytes: &mut Vec<u8>, cut: bool) {
        for secret in &self.0 {
            let mut found = memchr::memmem::find_iter(bytes, secret).peekable();
            if found.peek().is_none() {
                continue;
            }
            let (mut blanked, mut from) = (Vec::with_capacity(bytes.len()), 0);
            for at in found {
                blanked.extend_from_slice(&bytes[from..at]);
                blanked.extend_from_slice(Self::BLANK.as_bytes());
                from = at + secret.len();
            }
            blanked.extend_from_slice(&bytes[from..]);
            *bytes = blanked;
        }
        let left = self.0.iter().filter_map(|secret| left_at_the_end(secret, bytes)).max();
        if let Some(left) = left.filter(|_| cut) {
            bytes.truncate(bytes.len() - left);
            bytes.extend_from_slice(Self::BLANK.as_bytes());
        }
    }

    /// Blanks every credential in the values of header fields
    pub(super) fn blank_headers(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            let mut bytes = value.as_bytes().to_vec();
            self.blank_bytes(&mut bytes, false);
            if bytes != value.as_bytes() {
                *value = HeaderValue::from_bytes(&bytes)
                    .expect("what comes in is visible ASCII, and what stays was there");
            }
        }
    }

    const BLANK: &str = "[credential]";
}

/// Header fields as a trace holds them: names, and for each value one that a call takes in the same way
///
/// A credential has its placeholder, and all else is blanked.
pub(crate) fn blanked(fields: &HeaderMap) -> Vec<(String, String)> {
    let blank =
        |text: &[u8]| -> String { text.iter().map(|&byte| if byte == b' ' { ' ' } else { 'x' }).collect() };
    let field = |(name, value): (&HeaderName, &HeaderValue)| {
        let text = value.as_bytes();
        let secret = after_space(text);
        let value =
            match is_credential(name) && *name != header::COOKIE && secret.len() >= Credentials::MIN_BYTES {
                true => format!("{}{}", blank(&text[..text.len() - secret.len()]), placeholder(secret, 0)),
                false => blank(text),
            };
        (name.to_string(), value)
    };
    fields.iter().map(field).collect()
}

/// What follows the last space; all of `text` where there is none
fn after_space(text: &[u8]) -> &[u8] {
    memchr::memrchr(b' ', text).map_or(text, |at| &text[at + 1..])
}

/// How many bytes of a credential's beginning `text` ends with, if they are more than may stand
fn left_at_the_end(secret: &[u8], text: &[u8]) -> Option<usize> {
    let longest = text.len().min(secret.len());
    (Credentials::MAX_LEFT_BYTES + 1..=longest).rev().find(|&left| text.ends_with(&secret[..left]))
}

/// A secret and what a server may take it for, the bytes of a header field having no encoding of their own
///
/// Others than ASCII are read as UTF-8 or as ISO-8859-1, and in JSON may be escaped.
fn readings(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut readings = vec![secret.to_vec()];
    if !secret.is_ascii() {
        let in_utf_8 = String::from_utf8_lossy(secret);
        let in_iso_8859_1: String = secret.iter().map(|&byte| char::from(byte)).collect();
        readings.extend([escaped(&in_utf_8), escaped(&in_iso_8859_1), in_iso_8859_1].map(String::into_bytes));
    }
    readings
}

/// A text as a JSON string of ASCII has it
fn escaped(text: &str) -> String {
    let mut units = [0; 2];
    let escape = |char: char| match char.is_ascii() {
        true => char.to_string(),
        false => char.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    text.chars().map(escape).collect()
}

/// A secret in each spelling in which a server may echo it, as it is first
///
/// `stand_in` is as long and is spelled in its place: what is escaped of the secret is of that. JSON encoders
/// differ in what they escape that need not be: .NET's, Gson, Go's, and PHP's with the slashes.
fn spellings(secret: &[u8], stand_in: &[u8]) -> Vec<Vec<u8>> {
    let in_json = |escaped: &[u8], in_capitals: bool, with_slashes: bool| {
        let mut spelling = Vec::with_capacity(secret.len());
        for (byte, stand_in) in secret.iter().zip(stand_in) {
            if escaped.contains(byte) {
                let escape =
                    if in_capitals { format!("\\u{stand_in:04X}") } else { format!("\\u{stand_in:04x}") };
                spelling.extend_from_slice(escape.as_bytes());
            } else {
                let is_escaped = matches!(byte, b'"' | b'\\') || (*byte == b'/' && with_slashes);
                spelling.extend(is_escaped.then_some(b'\\'));
                spelling.push(*stand_in);
            }
        }
        spelling
    };
    let mut encoded = String::with_capacity(secret.len());
    percent::encode(stand_in, &mut encoded);
    vec![
        stand_in.to_vec(),
        in_json(b"", false, true),
        encoded.into_bytes(),
        in_json(b"", false, false),
        in_json(b"\"&'+<>`", true, false),
        in_json(b"&'<=>", false, false),
        in_json(b"&<>", false, false),
        in_json(b"\"&'<>", true, true),
    ]
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_blanked_wherever_they_came_from() {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, "Bearer sk-abcdef".parse().unwrap());
        headers.insert("x-api-key", "ant-123456".parse().unwrap());
        headers.insert("x-short", "word".parse().unwrap());
        let target = PathAndQuery::from_static("/v1?alt=sse&key=goog-7890&access_token=tok-4567");
        let credentials = Credentials::of(&headers, &target);
        let mut text = "bad sk-abcdef, ant-123456sk-abcdef goog-7890 tok-4567 sse".to_owned();
        let mut bytes = text.clone().into_bytes();
        credentials.blank(&mut text);
        credentials.blank_bytes(&mut bytes, false);
        assert_eq!(text, "bad [credential], [credential][credential] [credential] [credential] sse");
        assert_eq!(bytes, text.as_bytes());
        assert_eq!(format!("{credentials:?}"), "Credentials(4)");
    }

    /// What System.Text.Json, Gson, Go's encoding/json and PHP's json_encode write
    #[test]
    fn escaped_as_json_encoders_do() {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, "Bearer sk-a+b/c=d&e'f".parse().unwrap());
        let credentials = Credentials::of(&headers, &PathAndQuery::from_static("/"));
        for echo in [
            r"sk-a\u002Bb/c=d\u0026e\u0027f",
            r"sk-a+b/c\u003dd\u0026e\u0027f",
            r"sk-a+b/c=d\u0026e'f",
            r"sk-a+b\/c=d\u0026e\u0027f",
            r"sk-a+b\/c=d&e'f",
        ] {
            let mut body = format!(r#"{{"error":"bad key {echo}"}}"#).into_bytes();
            credentials.blank_bytes(&mut body, false);
            assert_eq!(body.escape_ascii().to_string(), r#"{\"error\":\"bad key [credential]\"}"#, "{echo}");
        }
        for (spelling, placeholder) in credentials.placeholders() {
            assert_eq!(spelling.len(), placeholder.len(), "{}", spelling.escape_ascii());
        }
    }

    #[test]
    fn part_of_a_name_tells() {
        for name in [
            "authorization",
            "proxy-authorization",
            "cf-aig-authorization",
            "helicone-auth",
            "x-goog-api-key",
            "api-key",
            "ocp-apim-subscription-key",
            "x-portkey-api-key",
            "x-amz-security-token",
            "X-Amz-Credential",
            "x-client-secret",
            "cookie",
            "x-hub-signature-256",
            "x-password",
            "sig",
            "X-Sig",
            "x-amz-sig-v4",
            "jwt",
            "x-jwt-assertion",
            "x-passphrase",
            "passwd",
            "x-access-tokens",
            "x-admin-tokens",
        ] {
            assert!(names_credential(name), "{name}");
        }
        for name in [
            "idempotency-key",
            "x-portkey-provider",
            "x-max-tokens",
            "max_tokens",
            "max-tokens",
            "maxtokens",
            "max_completion_tokens",
            "x-ratelimit-limit-tokens",
            "anthropic-ratelimit-tokens-remaining",
            "anthropic-ratelimit-input-tokens-reset",
            "x-design",
            "x-signal",
            "content-type",
            "keep-alive",
            "anthropic-version",
            "openai-organization",
        ] {
            assert!(!names_credential(name), "{name}");
        }
    }

    #[test]
    fn in_header_fields() {
        let target = PathAndQuery::from_static("/?key=goog-7890");
        let credentials = Credentials::of(&HeaderMap::new(), &target);
        let mut headers = HeaderMap::new();
        headers.insert("location", "https://h/?key=goog-7890&x=goog-7890".parse().unwrap());
        headers.insert("x-other", HeaderValue::from_bytes(b"\xFF as it was").unwrap());
        credentials.blank_headers(&mut headers);
        assert_eq!(headers["location"], "https://h/?key=[credential]&x=[credential]");
        assert_eq!(headers["x-other"].as_bytes(), b"\xFF as it was");
    }

    #[test]
    fn one_that_is_part_of_another() {
        let target = PathAndQuery::from_static("/?key=abcdef&token=abcdefghij");
        let mut text = "abcdefghij abcdef".to_owned();
        Credentials::of(&HeaderMap::new(), &target).blank(&mut text);
        assert_eq!(text, "[credential] [credential]");
    }

    #[test]
    fn each_cookie_is_one() {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, "session=first-secret; b=second-secret; c=dGhpcmQ==".parse().unwrap());
        let mut text = "first-secret second-secret session dGhpcmQ==".to_owned();
        Credentials::of(&headers, &PathAndQuery::from_static("/")).blank(&mut text);
        assert_eq!(text, "[credential] [credential] session [credential]");
    }

    #[test]
    fn cut_inside_one() {
        let target = PathAndQuery::from_static("/?key=abcdefghij");
        let credentials = Credentials::of(&HeaderMap::new(), &target);
        for (cut, blanked) in [
            ("got abcdefghi", "got [credential]"),
            ("got abcd", "got [credential]"),
            ("got abc", "got abc"),
            ("got abcd.", "got abcd."),
            ("", ""),
        ] {
            let (mut text, mut bytes) = (cut.to_owned(), cut.as_bytes().to_vec());
            credentials.blank_cut(&mut text);
            credentials.blank_bytes(&mut bytes, true);
            assert_eq!((text.as_str(), &bytes[..]), (blanked, blanked.as_bytes()));
        }
    }

    #[test]
    fn a_body_of_nothing_else_is_blanked_in_one_pass() {
        let target = PathAndQuery::from_static("/?key=abcdef");
        let mut bytes = b"abcdef".repeat(200_000);
        Credentials::of(&HeaderMap::new(), &target).blank_bytes(&mut bytes, false);
        assert_eq!(bytes, b"[credential]".repeat(200_000));
    }

    #[test]
    fn a_placeholder_has_the_spellings_of_its_credential() {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, "Bearer sk/a+b=cd".parse().unwrap());
        let target = PathAndQuery::from_static("/?key=plain-7890&token=50%25off");
        let credentials = Credentials::of(&headers, &target);
        let placeholders = credentials.placeholders();
        let of = |secret: &str| {
            let pair = placeholders.iter().find(|(spelling, _)| spelling == secret.as_bytes());
            pair.unwrap_or_else(|| panic!("{secret}")).1.as_str()
        };
        let [plain, escaped, encoded] =
            [of("sk/a+b=cd"), of(r"sk\/a+b=cd"), of("sk%2Fa%2Bb%3Dcd")].map(|it| it.to_owned());
        let spelled = spellings(b"sk/a+b=cd", plain.as_bytes());
        assert_eq!([escaped.as_bytes(), encoded.as_bytes()], [&spelled[1][..], &spelled[2]]);
        assert_eq!(of(r"sk/a\u002Bb=cd"), plain.replacen('+', r"\u002B", 1));
        assert_eq!(of(r"sk/a+b\u003dcd").replace(r"\u002b", "+"), plain);
        assert!(plain.starts_with('~') && plain[2..].starts_with("/~+"), "{plain}");
        for (spelling, placeholder) in &placeholders {
            assert_eq!(spelling.len(), placeholder.len(), "{}", spelling.escape_ascii());
        }
        let stand_ins: Vec<String> = placeholders.into_iter().map(|(_, placeholder)| placeholder).collect();
        assert_eq!(Credentials::of_placeholders(&stand_ins).0.len(), credentials.0.len());
    }

    #[test]
    fn other_spellings_of_a_credential_are_blanked_too() {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, "Bearer sk/a+b=cd".parse().unwrap());
        let credentials = Credentials::of(&headers, &PathAndQuery::from_static("/"));
        let mut text = r"sk/a+b=cd sk\/a+b=cd sk%2Fa%2Bb%3Dcd sk/other".to_owned();
        credentials.blank(&mut text);
        assert_eq!(text, "[credential] [credential] [credential] sk/other");
    }

    /// A key that has a slash in it is encoded in a query, and a server quotes it as it understood it
    #[test]
    fn a_query_parameter_is_blanked_as_it_is_meant_too() {
        let target = PathAndQuery::from_static("/?key=ab%2Fcd%2Bef&x=1");
        let mut text = r"ab%2Fcd%2Bef ab/cd+ef ab\/cd+ef".to_owned();
        Credentials::of(&HeaderMap::new(), &target).blank(&mut text);
        assert_eq!(text, "[credential] [credential] [credential]");
    }

    #[test]
    fn one_that_is_not_ascii_is_blanked_as_a_server_reads_it() {
        let credentials = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert("x-api-key", HeaderValue::from_bytes(value).unwrap());
            Credentials::of(&headers, &PathAndQuery::from_static("/"))
        };
        for (value, echoes) in [
            (
                "schlüssel-日".as_bytes(),
                &[
                    "schlüssel-日".as_bytes(),
                    "schl\u{C3}\u{BC}ssel-\u{E6}\u{97}\u{A5}".as_bytes(),
                    br"schl\u00fcssel-\u65e5",
                    br"schl\u00c3\u00bcssel-\u00e6\u0097\u00a5",
                    b"schl%C3%BCssel-%E6%97%A5",
                ][..],
            ),
            (
                b"schl\xFCssel",
                &[b"schl\xFCssel", "schlüssel".as_bytes(), "schl\u{FFFD}ssel".as_bytes(), br"schl\u00fcssel"]
                    [..],
            ),
        ] {
            let credentials = credentials(value);
            for echo in echoes {
                let echo = [b"got ", *echo, b"."].concat();
                let mut text = String::from_utf8_lossy(&echo).into_owned();
                credentials.blank(&mut text);
                assert_eq!(text, "got [credential].", "{}", echo.escape_ascii());
                let mut bytes = echo.clone();
                credentials.blank_bytes(&mut bytes, false);
                // Of bytes that no encoding fits, what stands for them is in texts alone.
                let is_text_alone = echo == "got schl\u{FFFD}ssel.".as_bytes();
                assert_eq!(bytes == b"got [credential].", !is_text_alone, "{}", echo.escape_ascii());
            }
        }
    }

    #[test]
    fn no_cut_is_inside_a_character() {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", HeaderValue::from_bytes("ééé日本語-🔑".as_bytes()).unwrap());
        headers.insert(
            "x-api-key-2",
            HeaderValue::from_bytes(b"\x97\xA5\xE6\x97\xA5 \xA9\xA9\xA9\xA9\xA9\xA9").unwrap(),
        );
        let credentials = Credentials::of(&headers, &PathAndQuery::from_static("/"));
        let echo = "got ééé日本語-🔑".as_bytes();
        for cut in 4..=echo.len() {
            let mut bytes = echo[..cut].to_vec();
            let mut text = String::from_utf8_lossy(&bytes).into_owned();
            credentials.blank_bytes(&mut bytes, true);
            credentials.blank_cut(&mut text);
            let left = cut - 4;
            assert_eq!(bytes.ends_with(b"[credential]"), left > Credentials::MAX_LEFT_BYTES, "{left}");
            assert!(text.len() < 4 + 2 * "é".len() + 3 || text == "got [credential]", "{left}: {text}");
        }
    }
}
