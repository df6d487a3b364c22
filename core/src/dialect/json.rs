//! Strings of a JSON document without copying them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{Malformed, repeats};

/// A string inside a JSON document, still in its escaped form
///
/// Lenient, as the servers are: null and absence are the empty string, a number or a boolean is
/// its own text, an array or an object is the empty string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonStr<'a>(&'a str);

impl<'a> JsonStr<'a> {
    /// The string in its escaped form, without the quotes
    pub fn escaped(self) -> &'a str {
        self.0
    }

    /// Whether the string is empty, null or absent
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The string itself, where it holds no escape
    pub fn plain(self) -> Option<&'a str> {
        memchr::memchr(b'\\', self.0.as_bytes()).is_none().then_some(self.0)
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
        Self(self.0.strip_prefix(prefix).unwrap_or(self.0))
    }

    /// What precedes `suffix`, if the string ends with it in its escaped form, or the string itself
    pub fn before(self, suffix: &str) -> Self {
        Self(self.0.strip_suffix(suffix).unwrap_or(self.0))
    }

    /// The whole number that the string or the JSON number is, if it is one and not negative
    pub fn number(self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// Appends the string, unescaped, to `out`
    ///
    /// A surrogate without its other half becomes U+FFFD.
    pub fn unescape_into(self, out: &mut String) {
        let mut rest = self.0;
        while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
            out.push_str(&rest[..at]);
            let (unescaped, length) = unescape(&rest[at..]);
            out.push(unescaped);
            rest = &rest[at + length..];
        }
        out.push_str(rest);
    }
}

impl<'a> JsonStr<'a> {
    /// What precedes the first half of a surrogate pair at the string's end, and that half
    pub(super) fn high_half_at_end(self) -> Option<(Self, u16)> {
        let at = self.0.len().checked_sub(6)?;
        // Only a backslash that is not itself escaped begins an escape.
        let digits = self.0.get(at..)?.strip_prefix("\\u")?;
        let before = &self.0[..at];
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        let unit = u16::from_str_radix(digits, 16).ok()?;
        (backslashes.is_multiple_of(2) && (0xD800..0xDC00).contains(&unit)).then_some((Self(before), unit))
    }

    /// Appends the character that `high` and the half at the string's front are, or U+FFFD where that
    /// is none; returns what follows
    pub(super) fn unescape_half(self, high: Option<u16>, out: &mut String) -> Self {
        let Some(high) = high else { return self };
        let low = self.0.strip_prefix("\\u").and_then(|rest| rest.get(..4));
        let low = low.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        match low.map(|low| char::decode_utf16([high, low]).next()) {
            Some(Some(Ok(whole))) => {
                out.push(whole);
                Self(&self.0[6..])
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
        match text.as_bytes().first() {
            Some(b'"') => Self(&text[1..text.len() - 1]),
            Some(b'{' | b'[' | b'n') | None => Self(""),
            Some(_) => Self(text),
        }
    }
}

/// A member that should be an object, of an event that may turn out to be of an unknown kind
///
/// So what it is matters only once it is asked for. Read in place: kept raw for later, nested
/// members would cost an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Member<T> {
    /// Absent or null
    #[default]
    Absent,
    /// An object
    Object(T),
    /// Something else
    Other,
}

impl<T: Default> Member<T> {
    /// The object; one without members where it is absent
    ///
    /// Errors: [`Malformed`] where it is something else.
    pub fn object(self) -> Result<T, Malformed> {
        match self {
            Self::Absent => Ok(T::default()),
            Self::Object(object) => Ok(object),
            Self::Other => Err(Malformed { reason: "JSON of an unexpected shape: no object".to_owned() }),
        }
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
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Member::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Member<T>, E> {
        Ok(Member::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Member<T>, E> {
        Ok(Member::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Member<T>, E> {
        Ok(Member::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Member<T>, E> {
        Ok(Member::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Member<T>, E> {
        Ok(Member::Other)
    }
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
            for object in read::<Vec<&RawValue>>(data)? {
                take(object.get())?;
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
    let own = own.number().and_then(|own| u32::try_from(own).ok());
    own.unwrap_or_else(|| u32::try_from(position).unwrap_or(u32::MAX))
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
        assert_eq!(string("504").to_string(), "504");
        assert_eq!(string("true").to_string(), "true");
        assert_eq!(
            [string("504"), string(r#""504""#), string("-1"), string("5.0")].map(JsonStr::number),
            [Some(504), Some(504), None, None]
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
        assert_eq!([delta("null"), delta("{}")], [Ok(String::new()), Ok(String::new())]);
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
        assert_eq!(objects(r#""error""#).unwrap_err().reason, "JSON, but not an object");
        assert_eq!(objects("error").unwrap_err().reason, "not JSON, at line 1 column 1");
    }
}
