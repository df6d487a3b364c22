//! Credentials: known by their place in the request, and blanked wherever a server echoes them.

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
fn names_credential(name: &str) -> bool {
    const WORDS: [&str; 8] =
        ["auth", "key", "token", "secret", "cookie", "signature", "password", "credential"];
    /// What has such a word in it and is none: an idempotency key is what one looks for in a provider's
    /// log, `x-portkey-provider` has an ordinary word for its value, and token counts are numbers
    const HARMLESS: [&str; 3] = ["idempotency-key", "portkey", "tokens"];
    let name = name.to_ascii_lowercase();
    let name = HARMLESS.iter().fold(name, |name, harmless| name.replace(harmless, ""));
    WORDS.iter().any(|word| name.contains(word))
}

/// The credentials that one request carries, the longest first: one may be part of another
#[derive(Clone, Default)]
pub(super) struct Credentials(Vec<String>);

impl Credentials {
    /// Shorter ones would blank ordinary words
    const MIN_BYTES: usize = 6;
    /// The most of a credential that may stand at the end of a text that was cut
    const MAX_LEFT_BYTES: usize = 3;

    /// The credentials in header fields, and in query parameters whose name says so
    pub(super) fn of(headers: &HeaderMap, target: &PathAndQuery) -> Self {
        let in_headers =
            headers.iter().filter(|(name, _)| is_credential(name)).filter_map(|(name, value)| {
                let value = value.to_str().ok()?;
                Some(match *name {
                    header::COOKIE => value.split(';').map(|pair| after(pair, '=')).collect(),
                    // "Bearer sk-…": the scheme is no secret
                    _ => vec![after(value, ' ')],
                })
            });
        let in_query = target
            .query()
            .unwrap_or("")
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .filter_map(|(name, value)| names_credential(name).then_some(value));
        let mut credentials = Self::default();
        in_headers.flatten().chain(in_query).for_each(|secret| credentials.hold(secret));
        credentials
    }

    /// The credentials in header fields that were made for an attempt
    pub(super) fn of_fields(headers: &HeaderMap) -> Self {
        Self::of(headers, &PathAndQuery::from_static("/"))
    }

    /// Those of another set as well
    pub(super) fn add_all(&mut self, other: Self) {
        other.0.into_iter().for_each(|spelling| self.insert(spelling));
    }

    /// The credential in one more header field's value
    pub(super) fn add(&mut self, value: &HeaderValue) {
        if let Ok(value) = value.to_str() {
            self.hold(after(value, ' '));
        }
    }

    /// Takes in a secret, in each spelling in which a server may echo it
    fn hold(&mut self, secret: &str) {
        if secret.len() < Self::MIN_BYTES {
            return;
        }
        spellings(secret).into_iter().for_each(|spelling| self.insert(spelling));
    }

    fn insert(&mut self, spelling: String) {
        let at = self.0.partition_point(|known| known.len() > spelling.len());
        if !self.0.contains(&spelling) {
            self.0.insert(at, spelling);
        }
    }

    /// Each spelling and what stands for it in a trace, the longest first
    ///
    /// What stands for a credential in another spelling is that of the credential, in this spelling.
    pub(super) fn placeholders(&self) -> Vec<(String, String)> {
        let of = |number: usize, known: &String| {
            let plain = self.0.iter().position(|plain| plain != known && spellings(plain).contains(known));
            let Some(number) = plain else { return placeholder(known, number) };
            let how = spellings(&self.0[number]).iter().position(|spelling| spelling == known);
            let [_, escaped, encoded] = spellings(&placeholder(&self.0[number], number));
            if how == Some(1) { escaped } else { encoded }
        };
        self.0.iter().enumerate().map(|(number, known)| (known.clone(), of(number, known))).collect()
    }

    /// Placeholders in the place of credentials: a call blanks them in the same way
    pub(super) fn of_placeholders(placeholders: &[String]) -> Self {
        let mut credentials = Self::default();
        let blankable = placeholders.iter().filter(|placeholder| placeholder.len() >= Self::MIN_BYTES);
        blankable.for_each(|placeholder| credentials.insert(placeholder.clone()));
        credentials
    }

    /// Blanks every credential in `text`
    pub(super) fn blank(&self, text: &mut String) {
        for secret in self.0.iter().filter(|secret| text.contains(secret.as_str())).collect::<Vec<_>>() {
            *text = text.replace(secret.as_str(), Self::BLANK);
        }
    }

    /// As [`Credentials::blank`], for a text that may have been cut inside a credential
    pub(super) fn blank_cut(&self, text: &mut String) {
        self.blank(text);
        if let Some(left) = self.left_at_the_end(text.as_bytes()) {
            text.truncate(text.len() - left);
            text.push_str(Self::BLANK);
        }
    }

    /// Blanks every credential in `bytes`, which may have been cut inside one if `cut`
    pub(super) fn blank_bytes(&self, bytes: &mut Vec<u8>, cut: bool) {
        for secret in &self.0 {
            let mut found = memchr::memmem::find_iter(bytes, secret.as_bytes()).peekable();
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
        if let Some(left) = self.left_at_the_end(bytes).filter(|_| cut) {
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
                *value = HeaderValue::from_bytes(&bytes).expect("what goes and what comes is visible ASCII");
            }
        }
    }

    /// How many bytes of a credential's beginning `text` ends with, if they are more than may stand
    fn left_at_the_end(&self, text: &[u8]) -> Option<usize> {
        let left = |secret: &String| {
            let longest = text.len().min(secret.len());
            (Self::MAX_LEFT_BYTES + 1..=longest)
                .rev()
                .find(|&left| text.ends_with(&secret.as_bytes()[..left]))
        };
        self.0.iter().filter_map(left).max()
    }

    const BLANK: &str = "[credential]";
}

/// Header fields as a trace holds them: names, and for each value one that a call takes in the same way
///
/// A credential has its placeholder, and all else is blanked.
pub(crate) fn blanked(fields: &HeaderMap) -> Vec<(String, String)> {
    let blank =
        |text: &str| -> String { text.chars().map(|char| if char == ' ' { ' ' } else { 'x' }).collect() };
    let field = |(name, value): (&HeaderName, &HeaderValue)| {
        let Ok(text) = value.to_str() else { return (name.to_string(), "x".repeat(value.len())) };
        let secret = after(text, ' ');
        let value =
            match is_credential(name) && *name != header::COOKIE && secret.len() >= Credentials::MIN_BYTES {
                true => format!("{}{}", blank(&text[..text.len() - secret.len()]), placeholder(secret, 0)),
                false => blank(text),
            };
        (name.to_string(), value)
    };
    fields.iter().map(field).collect()
}

/// What follows the last `separator`; all of `text` where there is none
fn after(text: &str, separator: char) -> &str {
    text.rsplit_once(separator).map_or(text, |(_, after)| after)
}

/// A secret in each spelling in which a server may echo it, as it is first
fn spellings(secret: &str) -> [String; 3] {
    [secret.to_owned(), secret.replace('/', "\\/"), percent_encoded(secret)]
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    percent::encode(text, &mut encoded);
    encoded
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
        ] {
            assert!(names_credential(name), "{name}");
        }
        for name in [
            "idempotency-key",
            "x-portkey-provider",
            "x-max-tokens",
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
        headers.insert(header::COOKIE, "session=first-secret; b=second-secret".parse().unwrap());
        let mut text = "first-secret second-secret session".to_owned();
        Credentials::of(&headers, &PathAndQuery::from_static("/")).blank(&mut text);
        assert_eq!(text, "[credential] [credential] session");
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
            let pair = placeholders.iter().find(|(spelling, _)| spelling == secret);
            pair.unwrap_or_else(|| panic!("{secret}")).1.as_str()
        };
        let [plain, escaped, encoded] =
            [of("sk/a+b=cd"), of(r"sk\/a+b=cd"), of("sk%2Fa%2Bb%3Dcd")].map(|it| it.to_owned());
        assert_eq!([escaped, encoded], [plain.replace('/', r"\/"), percent_encoded(&plain)]);
        assert!(plain.starts_with('~') && plain[2..].starts_with("/~+"), "{plain}");
        for (spelling, placeholder) in &placeholders {
            assert_eq!(spelling.len(), placeholder.len(), "{spelling}");
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
}
