//! Bytes, and the fragments that a file names.

use std::collections::BTreeMap;

use toml::Value;

use super::node::{Node, nearest};
use super::{Fault, Problem};

/// No step sends more than this at once, in bytes
const LARGEST: usize = 64 * 1024 * 1024;

/// The named fragments of a file, resolved where they are used
#[derive(Default)]
pub(super) struct Fragments {
    values: BTreeMap<String, Value>,
}

impl Fragments {
    /// Reads `[bytes]` and resolves each fragment once, so that a fault in an unused one shows too
    pub(super) fn parse(node: Option<Node>) -> Result<Self, Fault> {
        let Some(node) = node else { return Ok(Self::default()) };
        let mut values = BTreeMap::new();
        for (name, node) in node.fields()?.entries() {
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(node.invalid("a name has only letters, digits and _"));
            }
            values.insert(name, node.value);
        }
        let fragments = Self { values };
        for (name, value) in &fragments.values {
            let node = Node { path: format!("bytes.{name}"), value: value.clone() };
            fragments.expand(&node, &mut vec![name.clone()])?;
        }
        Ok(fragments)
    }

    /// The bytes that a value describes
    pub(super) fn resolve(&self, node: &Node) -> Result<Vec<u8>, Fault> {
        self.expand(node, &mut Vec::new())
    }

    /// `open` are the fragments in which this value lies: one of them again would have no end
    fn expand(&self, node: &Node, open: &mut Vec<String>) -> Result<Vec<u8>, Fault> {
        let child = |path: String, value: &Value| Node { path, value: value.clone() };
        let bytes = match &node.value {
            Value::String(text) => self.text(node, text, open)?,
            Value::Array(parts) => {
                let mut bytes = Vec::new();
                for (at, part) in parts.iter().enumerate() {
                    bytes.extend(self.expand(&child(format!("{}[{at}]", node.path), part), open)?);
                    bounded(node, bytes.len())?;
                }
                bytes
            }
            Value::Table(table) => {
                let mut fields = child(node.path.clone(), &Value::Table(table.clone())).fields()?;
                if let Some(of) = fields.take("repeat") {
                    let times = fields.required("times")?.count()? as usize;
                    fields.finish()?;
                    let once = self.expand(&of, open)?;
                    bounded(node, once.len().saturating_mul(times))?;
                    once.repeat(times)
                } else {
                    match fields.only(&["hex", "base64", "chunk", "repeat"])? {
                        ("hex", digits) => hex(&digits)?,
                        ("base64", digits) => base64(&digits)?,
                        (_, content) => chunk(&content, &self.expand(&content, open)?)?,
                    }
                }
            }
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {
                return Err(node.fault(Problem::Type("bytes: a string, a list of bytes, or a table")));
            }
        };
        bounded(node, bytes.len())?;
        Ok(bytes)
    }

    /// A string with its `$name`s replaced; `$$` is a dollar
    fn text(&self, node: &Node, text: &str, open: &mut Vec<String>) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            bytes.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                bytes.push(b'$');
                rest = after;
                continue;
            }
            let name = &rest[..rest.find(|character| !is_name(character)).unwrap_or(rest.len())];
            rest = &rest[name.len()..];
            let Some(value) = self.values.get(name) else {
                let nearest = nearest(name, self.values.keys().map(String::as_str));
                return Err(node.invalid(format!("no bytes are named `${name}`; did you mean `${nearest}`?")));
            };
            if open.iter().any(|outer| outer == name) {
                return Err(node.invalid(format!("`${name}` contains itself")));
            }
            open.push(name.to_owned());
            let inner = Node { path: format!("bytes.{name}"), value: value.clone() };
            bytes.extend(self.expand(&inner, open)?);
            open.pop();
            bounded(node, bytes.len())?;
        }
        bytes.extend_from_slice(rest.as_bytes());
        Ok(bytes)
    }
}

/// `content` as one chunk of the chunked transfer coding (RFC 9112, 7.1)
pub(super) fn chunk(node: &Node, content: &[u8]) -> Result<Vec<u8>, Fault> {
    if content.is_empty() {
        return Err(node.invalid("a chunk without content would be the last one: use \"last-chunk\""));
    }
    let mut chunk = format!("{:x}\r\n", content.len()).into_bytes();
    chunk.extend_from_slice(content);
    chunk.extend_from_slice(b"\r\n");
    Ok(chunk)
}

fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

fn bounded(node: &Node, length: usize) -> Result<(), Fault> {
    if length > LARGEST {
        return Err(node.invalid(format!("{length} bytes are more than {LARGEST}")));
    }
    Ok(())
}

/// Pairs of digits, with spaces anywhere
fn hex(node: &Node) -> Result<Vec<u8>, Fault> {
    let fault = || node.invalid("not pairs of hexadecimal digits");
    let digits: Vec<u8> = node
        .value
        .as_str()
        .ok_or_else(|| node.fault(Problem::Type("a string of hexadecimal digits")))?
        .chars()
        .filter(|character| !character.is_whitespace())
        .map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok()).ok_or_else(fault))
        .collect::<Result<_, _>>()?;
    if !digits.len().is_multiple_of(2) {
        return Err(fault());
    }
    Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// The standard alphabet (RFC 4648, 4), with or without padding, with spaces anywhere
fn base64(node: &Node) -> Result<Vec<u8>, Fault> {
    let fault = || node.invalid("not base64");
    let text = node.value.as_str().ok_or_else(|| node.fault(Problem::Type("a string of base64")))?;
    let packed: String = text.chars().filter(|character| !character.is_whitespace()).collect();
    let packed = packed.trim_end_matches('=');
    if packed.len() % 4 == 1 {
        return Err(fault());
    }
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for digit in packed.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return Err(fault()),
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    Ok(bytes)
}
