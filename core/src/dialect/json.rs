//! Strings of a JSON document without copying them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::few::Few;
use super::{Malformed, repeats};

/// A string inside a JSON document, still in its escaped form
///
/// Lenient, as the servers are: null, absence and an empty array or object are the empty string, and
/// a number or a boolean is its own text. An array or an object that is not empty is no text at all;
/// it reads as the empty string too, but [`JsonStr::text`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonStr<'a>(Option<&'a str>);

impl Default for JsonStr<'_> {
    fn default() -> Self {
        Self(Some(""))
    }
}

impl<'a> JsonStr<'a> {
    /// The string in its escaped form, without the quotes
    pub fn escaped(self) -> &'a str {
        self.0.unwrap_or_default()
    }

    /// The string, of which no word may be lost
    ///
    /// Errors: [`Malformed`] where it is an array or an object that is not empty.
    pub fn text(self) -> Result<Self, Malformed> {
        if self.0.is_some() { Ok(self) } else { Err(Malformed::shape("no text")) }
    }

    /// Whether the string is empty, null or absent, or no text at all
    pub fn is_empty(self) -> bool {
        self.escaped().is_empty()
    }

    /// This string, or `other` where it is empty; one that is no text is not
    pub fn or(self, other: Self) -> Self {
        if self.0 == Some("") { other } else { self }
    }

    /// The string itself, where it holds no escape
    pub fn plain(self) -> Option<&'a str> {
        let escaped = self.escaped();
        memchr::memchr(b'\\', escaped.as_bytes()).is_none().then_some(escaped)
    }

    /// Whether the string is `text`; an escaped spelling of it counts
    pub fn is(self, text: &str) -> bool {
        match self.plain() {
            Some(plain) => plain == text,
            None => self.to_string() == text,
        }
    }

    /// What follows `prefix`, if the string begins with it in its escaped form, or the string itself
    pub fn after(self, prefix: &str) -> Self {
        self.map(|escaped| escaped.strip_prefix(prefix).unwrap_or(escaped))
    }

    /// What precedes `suffix`, if the string ends with it in its escaped form, or the string itself
    pub fn before(self, suffix: &str) -> Self {
        self.map(|escaped| escaped.strip_suffix(suffix).unwrap_or(escaped))
    }

    fn map(self, part: impl FnOnce(&'a str) -> &'a str) -> Self {
        Self(self.0.map(part))
    }

    /// The whole number that the string or the JSON number is, if it is one and not negative
    ///
    /// Some servers count in floats: `12.0` is 12.
    pub fn number(self) -> Option<u64> {
        let digits = self.escaped();
        let whole = digits.split_once('.').filter(|(_, rest)| rest.bytes().all(|digit| digit == b'0'));
        whole.map_or(digits, |(whole, _)| whole).parse().ok()
    }

    /// As [`JsonStr::number`], for what a provider numbers
    pub fn index(self) -> Option<u32> {
        self.number().and_then(|number| u32::try_from(number).ok())
    }

    /// Appends the string, unescaped, to `out`
    ///
    /// A surrogate without its other half becomes U+FFFD.
    pub fn unescape_into(self, out: &mut String) {
        let mut rest = self.escaped();
        while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
            out.push_str(&rest[..at]);
            let (unescaped, length) = unescape(&rest[at..]);
            out.push(unescaped);
            rest = &rest[at + length..];
        }
        out.push_str(rest);
    }
}

/// A string that needs no escape
impl From<&'static str> for JsonStr<'_> {
    fn from(plain: &'static str) -> Self {
        Self(Some(plain))
    }
}

impl<'a> JsonStr<'a> {
    /// What precedes the first half of a surrogate pair at the string's end, and that half
    pub(super) fn high_half_at_end(self) -> Option<(Self, u16)> {
        let escaped = self.escaped();
        let at = escaped.len().checked_sub(6)?;
        // Only a backslash that is not itself escaped begins an escape.
        let digits = escaped.get(at..)?.strip_prefix("\\u")?;
        let before = &escaped[..at];
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        let unit = u16::from_str_radix(digits, 16).ok()?;
        (backslashes.is_multiple_of(2) && (0xD800..0xDC00).contains(&unit))
            .then_some((Self(Some(before)), unit))
    }

    /// Appends the character that `high` and the half at the string's front are, or U+FFFD where that
    /// is none; returns what follows
    pub(super) fn unescape_half(self, high: Option<u16>, out: &mut String) -> Self {
        let Some(high) = high else { return self };
        let low = self.escaped().strip_prefix("\\u").and_then(|rest| rest.get(..4));
        let low = low.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        match low.map(|low| char::decode_utf16([high, low]).next()) {
            Some(Some(Ok(whole))) => {
                out.push(whole);
                self.map(|escaped| &escaped[6..])
            }
            _ => {
                out.push(char::REPLACEMENT_CHARACTER);
                self
            }
        }
    }
}

/// The string itself, unescaped
impl fmt::Display for JsonStr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.unescape_into(&mut out);
        f.write_str(&out)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonStr<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        Ok(Self::from_raw(raw))
    }
}

impl<'a> JsonStr<'a> {
    /// The string that a raw value is
    pub fn from_raw(raw: &'a RawValue) -> Self {
        let text = raw.get();
        Self(match text.as_bytes().first() {
            Some(b'"') => Some(&text[1..text.len() - 1]),
            Some(b'{' | b'[') if !is_blank(text) => None,
            Some(b'{' | b'[' | b'n') | None => Some(""),
            Some(_) => Some(text),
        })
    }
}

/// A member that should be an object, of an event that may turn out to be of an unknown kind
///
/// So what it is matters only once it is asked for. Read in place: kept raw for later, nested
/// members would cost an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Member<T> {
    /// Absent, null, or something else that is empty: `""`, `[]`, `false` or 0
    #[default]
    Absent,
    /// An object
    Object(T),
    /// Something else that is not empty
    Other,
}

impl<T> Member<T> {
    /// The same by reference
    pub fn as_ref(&self) -> Member<&T> {
        match self {
            Self::Absent => Member::Absent,
            Self::Object(object) => Member::Object(object),
            Self::Other => Member::Other,
        }
    }

    /// The object, if there is one
    ///
    /// Errors: [`Malformed`] where there is something else.
    pub fn present(self) -> Result<Option<T>, Malformed> {
        match self {
            Self::Absent => Ok(None),
            Self::Object(object) => Ok(Some(object)),
            Self::Other => Err(Malformed::shape("no object")),
        }
    }
}

impl<T: Default> Member<T> {
    /// The object; one without members where it is absent
    ///
    /// Errors: [`Malformed`] where it is something else.
    pub fn object(self) -> Result<T, Malformed> {
        self.present().map(Option::unwrap_or_default)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Member<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MemberVisitor(PhantomData))
    }
}

struct MemberVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MemberVisitor<T> {
    type Value = Member<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Member<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Member::Object)
    }

    fn visit_unit<E>(self) -> Result<Member<T>, E> {
        Ok(Member::Absent)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Member<T>, A::Error> {
        let mut is_empty = true;
        while elements.next_element::<IgnoredAny>()?.is_some() {
            is_empty = false;
        }
        Ok(unless_empty(is_empty))
    }

    fn visit_str<E>(self, text: &str) -> Result<Member<T>, E> {
        Ok(unless_empty(text.is_empty()))
    }

    fn visit_bool<E>(self, is_true: bool) -> Result<Member<T>, E> {
        Ok(unless_empty(!is_true))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Member<T>, E> {
        Ok(unless_empty(number == 0))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Member<T>, E> {
        Ok(Member::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Member<T>, E> {
        Ok(Member::Other)
    }
}

fn unless_empty<T>(is_empty: bool) -> Member<T> {
    if is_empty { Member::Absent } else { Member::Other }
}

/// Reads `text` as one JSON document; of a member that comes twice, the last one counts
///
/// Errors: [`Malformed`], which says where the fault lies and quotes nothing.
pub fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Malformed> {
    let read = match serde_json::from_str(text) {
        // A misfit deep in the document is not located by the second reading, so the first one's is
        // told.
        Err(error) if repeats::are_cause_of(&error) => {
            repeats::read(text).map_err(|other| if other.is_data() { error } else { other })
        }
        read => read,
    };
    read.map_err(|error| {
        let what = if error.is_data() { "JSON of an unexpected shape" } else { "not JSON" };
        let (line, column) = (error.line(), error.column());
        Malformed { reason: format!("{what}, at line {line} column {column}") }
    })
}

/// Reads a member that should be an object and was kept raw; one without members where it is absent
/// or empty
///
/// Errors: [`Malformed`] where it is something else, or cannot be read as a `T`.
pub fn object<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> Result<T, Malformed> {
    raw.map_or_else(|| Ok(T::default()), |raw| read::<Member<T>>(raw.get())?.object())
}

/// Reads the parts of a message, whichever form they have: a list, one part alone, or its text
///
/// Errors: [`Malformed`] where it is none of those, or cannot be read as parts.
pub fn parts<'a, T>(raw: Option<&'a RawValue>) -> Result<Few<T>, Malformed>
where
    T: Deserialize<'a> + From<JsonStr<'a>>,
{
    let Some(raw) = raw.filter(|raw| !is_blank(raw.get())) else { return Ok(Few::default()) };
    match raw.get().as_bytes().first() {
        Some(b'[') => read(raw.get()),
        Some(b'{') => Ok(Few::from(read::<T>(raw.get())?)),
        _ => Ok(Few::from(T::from(JsonStr::from_raw(raw)))),
    }
}

/// Calls `take` with the JSON object that `data` is, or with each object of the array that it is
///
/// Errors: [`Malformed`] where `data` is neither, and whatever `take` returns.
pub fn each_object<'a>(
    data: &'a str,
    mut take: impl FnMut(&'a str) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    match data.trim_ascii_start().as_bytes().first() {
        Some(b'{') => take(data),
        // Google wraps an error, and Gemini a whole unary stream, in an array.
        Some(b'[') => {
            for element in read::<Vec<&RawValue>>(data)? {
                match element.get() {
                    object if object.starts_with('{') => take(object)?,
                    blank if is_blank(blank) => {}
                    _ => {
                        return Err(Malformed {
                            reason: "a JSON array of something else than objects".to_owned(),
                        });
                    }
                }
            }
            Ok(())
        }
        _ => {
            read::<IgnoredAny>(data)?;
            Err(Malformed { reason: "JSON, but not an object".to_owned() })
        }
    }
}

/// The number of a choice: its own, or its place in the list where it gives none
pub fn index(own: JsonStr<'_>, position: usize) -> u32 {
    own.index().unwrap_or_else(|| u32::try_from(position).unwrap_or(u32::MAX))
}

/// Whether a member such as `error` says something; some servers send it, empty, in every event
///
/// Nor does an object say anything whose members are all empty.
pub fn says_something(member: Option<&RawValue>) -> bool {
    let Some(text) = member.map(RawValue::get) else { return false };
    if !text.starts_with('{') || is_blank(text) {
        return !is_blank(text);
    }
    let members = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(text);
    members.map_or(true, |members| members.values().any(|value| !is_blank(value.get())))
}

/// Whether a value is null, false, zero or empty
fn is_blank(text: &str) -> bool {
    match text.as_bytes() {
        [b'{', inner @ .., b'}'] | [b'[', inner @ .., b']'] => inner.trim_ascii().is_empty(),
        _ => matches!(text, "null" | "false" | "0" | "\"\""),
    }
}

/// Whether a value is the empty string
pub fn is_empty_string(raw: &RawValue) -> bool {
    raw.get() == "\"\""
}

/// The character that an escape at the front of `text` stands for, and the escape's length
///
/// `text` comes out of a document that `serde_json` took, so every escape is well formed.
fn unescape(text: &str) -> (char, usize) {
    let unit = |at: usize| text.get(at..at + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match text.as_bytes().get(1) {
        Some(b'n') => ('\n', 2),
        Some(b't') => ('\t', 2),
        Some(b'r') => ('\r', 2),
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(b'u') => {
            let first = unit(2).unwrap_or(0xFFFD);
            if (0xD800..0xDC00).contains(&first)
                && text.get(6..8) == Some("\\u")
                && let Some(second @ 0xDC00..0xE000) = unit(8)
            {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
            }
            (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
        }
        Some(&other) => (char::from(other), 2),
        None => (char::REPLACEMENT_CHARACTER, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(json: &str) -> JsonStr<'_> {
        read(json).unwrap()
    }

    #[test]
    fn unescapes_as_serde_json_does() {
        for json in
            [r#""""#, r#""plain""#, r#""a\"b\\c\/d\n\t\r\b\fe""#, r#""\u00e9\ud83c\udf0d\u0041z""#, "\"é🌍\""]
        {
            assert_eq!(string(json).to_string(), serde_json::from_str::<String>(json).unwrap(), "{json}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        for (json, text) in [
            (r#""\ud83c""#, "\u{FFFD}"),
            (r#""\ud83cx""#, "\u{FFFD}x"),
            (r#""\udf0d\ud83c""#, "\u{FFFD}\u{FFFD}"),
            (r#""\ud83c\u0041""#, "\u{FFFD}A"),
        ] {
            assert_eq!(string(json).to_string(), text, "{json}");
        }
    }

    #[test]
    fn what_is_no_string_is_read_leniently() {
        assert!(string("null").is_empty());
        assert!(string(r#"{"a":1}"#).is_empty());
        assert!(string("[1]").is_empty());
        for nothing in ["null", r#""""#, "{}", "[ ]"] {
            assert_eq!(string(nothing).text(), Ok(JsonStr::default()), "{nothing}");
            assert_eq!(string(nothing).or(string("\"a\"")), string("\"a\""), "{nothing}");
        }
        for no_text in [r#"{"a":1}"#, "[1]"] {
            assert_eq!(string(no_text).text().unwrap_err().reason, "JSON of an unexpected shape: no text");
            assert_eq!(string(no_text).or(string("\"a\"")), string(no_text), "{no_text}");
        }
        assert_eq!(string("504").to_string(), "504");
        assert_eq!(string("true").to_string(), "true");
        assert_eq!(
            ["504", r#""504""#, "12.0", "12.5", "-1", "1e3", "\"\""].map(|json| string(json).number()),
            [Some(504), Some(504), Some(12), None, None, None, None]
        );
    }

    #[test]
    fn a_member_that_is_no_object_matters_once_it_is_asked_for() {
        #[derive(Debug, Default, Deserialize, PartialEq)]
        #[serde(default)]
        struct Event<'a> {
            #[serde(borrow)]
            delta: Member<Delta<'a>>,
            kind: JsonStr<'a>,
        }
        #[derive(Debug, Default, Deserialize, PartialEq)]
        #[serde(default)]
        struct Delta<'a> {
            #[serde(borrow)]
            text: JsonStr<'a>,
        }
        let delta = |delta: &str| {
            let json = format!(r#"{{"delta":{delta},"kind":"k"}}"#);
            let event = read::<Event<'_>>(&json).unwrap();
            assert_eq!(event.kind.plain(), Some("k"), "{json}");
            event.delta.object().map(|delta| delta.text.to_string())
        };
        assert_eq!(delta(r#"{"text":"a\n","other":[{"x":[1]}]}"#), Ok("a\n".to_owned()));
        for nothing in ["null", "{}", r#""""#, "[]", "[ ]", "false", "0"] {
            assert_eq!(delta(nothing), Ok(String::new()), "{nothing}");
        }
        assert_eq!(read::<Event<'_>>("{}").unwrap().delta, Member::Absent);
        for other in [r#""a\u0041""#, r#"[1,[{"a":[]}]]"#, "true", "7", "-7", "0.5"] {
            let reason = delta(other).unwrap_err().reason;
            assert_eq!(reason, "JSON of an unexpected shape: no object", "{other}");
        }
    }

    #[test]
    fn an_empty_member_says_nothing() {
        let says = |json| says_something(Some(read(json).unwrap()));
        for nothing in
            ["null", "false", "0", "{}", "{ }", "[]", "[\n]", r#""""#, r#"{"code":null,"message": ""}"#]
        {
            assert!(!says(nothing), "{nothing}");
        }
        for something in ["true", "1", "[1]", r#""x""#, r#"{"code":null,"message":"m"}"#, r#"{"code":500}"#] {
            assert!(says(something), "{something}");
        }
        assert!(!says_something(None));
    }

    #[test]
    fn malformed_data_is_located_and_not_quoted() {
        let reason = |text| read::<Vec<u32>>(text).unwrap_err().reason;
        assert_eq!(reason("[1,secret]"), "not JSON, at line 1 column 4");
        assert_eq!(reason(r#"[1,"secret"]"#), "JSON of an unexpected shape, at line 1 column 11");
        assert_eq!(reason("[1] 2"), "not JSON, at line 1 column 5");
    }

    #[test]
    fn objects_come_alone_or_in_an_array() {
        let objects = |data| {
            let mut taken = Vec::new();
            each_object(data, |object| {
                taken.push(object);
                Ok(())
            })
            .map(|()| taken)
        };
        assert_eq!(objects(r#" {"a":1}"#).unwrap(), [r#" {"a":1}"#]);
        assert_eq!(objects(r#"[{"a":1}, {"b":2}]"#).unwrap(), [r#"{"a":1}"#, r#"{"b":2}"#]);
        assert_eq!(objects(r#"[null, {"a":1}, "", [] ]"#).unwrap(), [r#"{"a":1}"#]);
        assert_eq!(objects("[[{}]]").unwrap_err().reason, "a JSON array of something else than objects");
        assert_eq!(objects(r#""error""#).unwrap_err().reason, "JSON, but not an object");
        assert_eq!(objects("error").unwrap_err().reason, "not JSON, at line 1 column 1");
    }
}
