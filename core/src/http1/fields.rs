//! Header fields as they came: in their order, their case and their bytes.

use std::fmt;

/// Header fields in the order, the case and the bytes they came in
///
/// All names and values lie in one buffer, without the white space around a value; a value that was
/// folded over lines, in a response, is joined with single spaces. Names are tokens, and no value has
/// a line end or a NUL in it. The `Debug` form shows names only: credentials are values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// Each name, and right behind it its value
    bytes: Vec<u8>,
    /// Where each name and each value ends in `bytes`
    ends: Vec<Ends>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Ends {
    name: usize,
    value: usize,
}

impl Fields {
    /// How many field lines there are
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Each field line: its name, and its value in bytes
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |ends| {
            let name = std::str::from_utf8(&self.bytes[start..ends.name]).unwrap_or_default();
            start = ends.value;
            (name, &self.bytes[ends.name..ends.value])
        })
    }

    /// The value of the first field with this name, in whatever case
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The values of all fields with this name, in whatever case
    pub fn get_all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s [u8]> {
        self.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The members of a comma-separated field over all its lines, without white space, empty ones too
    pub(super) fn members<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s [u8]> {
        self.get_all(name).flat_map(|value| value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii))
    }

    /// Bytes that are held
    pub(super) fn held(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a field line; the name must be a token
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        self.bytes.extend_from_slice(name.as_bytes());
        let name = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push(Ends { name, value: self.bytes.len() });
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&str, &[u8])]) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in lines {
            fields.push(name, value);
        }
        fields
    }

    #[test]
    fn fields_are_found_in_any_case_and_kept_in_their_own() {
        let lines: [(&str, &[u8]); 4] =
            [("X-a", b"1, 2"), ("Empty", b""), ("x-A", b" \xFF,"), ("Set-Cookie", b"secret")];
        let fields = fields(&lines);
        assert_eq!(fields.iter().collect::<Vec<_>>(), lines);
        assert_eq!((fields.len(), fields.is_empty()), (4, false));
        assert_eq!(fields.get("x-a"), Some(&b"1, 2"[..]));
        assert_eq!(fields.get("EMPTY"), Some(&b""[..]));
        assert_eq!(fields.get("x"), None);
        assert_eq!(fields.get_all("X-A").collect::<Vec<_>>(), [&b"1, 2"[..], b" \xFF,"]);
        assert_eq!(fields.members("x-a").collect::<Vec<_>>(), [&b"1"[..], b"2", b"\xFF", b""]);
        assert_eq!(format!("{fields:?}"), r#"["X-a", "Empty", "x-A", "Set-Cookie"]"#);
    }

    #[test]
    fn no_fields() {
        let none = fields(&[]);
        assert_eq!(none, Fields::default());
        assert!(none.is_empty() && none.iter().next().is_none() && none.get("a").is_none());
    }
}
