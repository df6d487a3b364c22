//! Identifiers in a path, so encoded that nothing can end their segment.

use crate::percent;

/// An identifier that no path segment can be
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadId;

/// How many places `{…}` a path has
///
/// # Panics
///
/// A brace is not closed, or not opened.
pub(super) const fn places(path: &str) -> usize {
    let bytes = path.as_bytes();
    let (mut at, mut places, mut open) = (0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'{' => {
                assert!(!open, "a place in the path is not closed");
                open = true;
                places += 1;
            }
            b'}' => {
                assert!(open, "a place in the path is not opened");
                open = false;
            }
            _ => {}
        }
        at += 1;
    }
    assert!(!open, "a place in the path is not closed");
    places
}

/// The path with an identifier in each of its places, percent-encoded (RFC 3986, 2.3)
///
/// Where `by_name`, an identifier may bear the name of its collection, as in `files/abc`: it is that of
/// the path in front of the place, and is not repeated.
///
/// Errors: an identifier that is empty, `.` or `..`. However it is encoded, such a segment makes a path
/// another one: that of the whole collection, or of what holds it.
pub(super) fn filled(path: &str, ids: &[&str], by_name: bool) -> Result<String, BadId> {
    let mut filled = String::with_capacity(path.len() + ids.iter().map(|id| id.len()).sum::<usize>());
    let mut rest = path;
    for id in ids {
        let (before, after) = rest.split_once('{').expect("as many identifiers as places");
        filled.push_str(before);
        let collection = &filled[filled.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1)..];
        let id = id.strip_prefix(collection).filter(|_| by_name).unwrap_or(id);
        if matches!(id, "" | "." | "..") {
            return Err(BadId);
        }
        // A segment may have colons (RFC 3986, 3.3), as `ft:gpt-4o:org` has; but not where one begins a method.
        let colon = if path.contains(':') { "%3A" } else { ":" };
        for (number, part) in id.split(':').enumerate() {
            filled.push_str(if number > 0 { colon } else { "" });
            percent::encode(part, &mut filled);
        }
        rest = after.split_once('}').expect("places are closed").1;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_an_identifier_ends_its_segment() {
        for (id, expected) in [
            ("file-abc_1.2~", "/files/file-abc_1.2~/content"),
            ("a/b", "/files/a%2Fb/content"),
            ("../batches", "/files/..%2Fbatches/content"),
            ("a?x=1#y", "/files/a%3Fx%3D1%23y/content"),
            ("a\r\nx: y", "/files/a%0D%0Ax:%20y/content"),
            ("a\0", "/files/a%00/content"),
            ("%2e%2e", "/files/%252e%252e/content"),
            ("ünï", "/files/%C3%BCn%C3%AF/content"),
            ("{file}", "/files/%7Bfile%7D/content"),
            ("ft:gpt:org::1", "/files/ft:gpt:org::1/content"),
        ] {
            assert_eq!(filled("/files/{file}/content", &[id], false).as_deref(), Ok(expected), "{id:?}");
        }
        for id in ["", ".", ".."] {
            assert_eq!(filled("/files/{file}", &[id], false), Err(BadId), "{id:?}");
        }
        assert_eq!(filled("/a/{b}/c/{d}?x=y", &["1", "2/3"], false).as_deref(), Ok("/a/1/c/2%2F3?x=y"));
    }

    #[test]
    fn the_name_of_a_collection_is_not_repeated() {
        let path = "/v1beta/models/{model}:generateContent";
        for id in ["gemini-x", "models/gemini-x"] {
            let expected = "/v1beta/models/gemini-x:generateContent";
            assert_eq!(filled(path, &[id], true).as_deref(), Ok(expected));
        }
        assert_eq!(
            filled(path, &["models/x"], false).as_deref(),
            Ok("/v1beta/models/models%2Fx:generateContent")
        );
        let expected = "/v1beta/models/a%3Adelete:generateContent";
        assert_eq!(filled(path, &["a:delete"], true).as_deref(), Ok(expected));
        for id in ["models/", "models/.."] {
            assert_eq!(filled(path, &[id], true), Err(BadId), "{id}");
        }
    }

    #[test]
    fn places_are_counted() {
        assert_eq!([places("/a"), places("/{a}"), places("/{a}/b/{c}?d")], [0, 1, 2]);
    }
}
