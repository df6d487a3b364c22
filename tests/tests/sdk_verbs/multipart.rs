//! Forms (RFC 7578), taken apart and built again.

use steadfast::body::{Form, Part};

/// A part of a form, as it went over the wire
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    name: String,
    file_name: Option<String>,
    content_type: Option<String>,
    bytes: Vec<u8>,
}

/// The parts of a body, where its content type says that it has any
pub(crate) fn parts(content_type: Option<&str>, body: &[u8]) -> Option<Vec<Sent>> {
    let (_, boundary) = content_type?.strip_prefix("multipart/form-data;")?.split_once("boundary=")?;
    let delimiter = format!("\r\n--{}", boundary.trim_matches('"'));
    // Each delimiter is the end of a line, but for the first.
    let body = [b"\r\n", body].concat();
    let mut pieces = split(&body, delimiter.as_bytes()).into_iter();
    assert_eq!(pieces.next(), Some(&b""[..]), "nothing stands in front of the first part");
    let mut pieces: Vec<&[u8]> = pieces.collect();
    assert!(pieces.pop().is_some_and(|end| end.trim_ascii() == b"--"), "the last delimiter ends the body");
    Some(pieces.into_iter().map(part).collect())
}

fn part(piece: &[u8]) -> Sent {
    let end = find(piece, b"\r\n\r\n").expect("a part has a head and its content");
    let (head, bytes) = (&piece[..end], &piece[end + 4..]);
    let head = std::str::from_utf8(head).expect("names are UTF-8");
    let field = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let disposition = field("content-disposition").expect("a part says what it is");
    let parameter = |name: &str| {
        let (_, rest) = disposition.split_once(&format!("; {name}=\""))?;
        rest.split('"').next().map(str::to_owned)
    };
    Sent {
        name: parameter("name").expect("a part has a name"),
        file_name: parameter("filename"),
        content_type: field("content-type").map(str::to_owned),
        bytes: bytes.to_vec(),
    }
}

/// What lies between the places where `at` stands
fn split<'a>(bytes: &'a [u8], at: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while let Some(found) = find(rest, at) {
        pieces.push(&rest[..found]);
        rest = &rest[found + at.len()..];
    }
    pieces.push(rest);
    pieces
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// A form of ours with these parts
pub(crate) fn form(parts: &[Sent]) -> Form {
    parts.iter().fold(Form::new(), |form, sent| {
        let Sent { name, file_name, content_type, bytes } = sent.clone();
        let part = Part::new(name, bytes);
        let part = file_name.into_iter().fold(part, Part::file_name);
        form.part(content_type.into_iter().fold(part, Part::content_type))
    })
}
