//! Percent-encoding (RFC 3986).

/// Appends `text` with all but the unreserved characters (section 2.3) in their percent-encoding
pub(crate) fn encode(text: impl AsRef<[u8]>, encoded: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text.as_ref() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => {
                let [high, low] = [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]));
                encoded.extend(['%', high, low]);
            }
        }
    }
}

/// The bytes that `text` stands for; a percent sign that begins no encoding stands for itself
pub(crate) fn decode(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let encoded = match rest {
            [b'%', high, low, ..] => digit(*high).zip(digit(*low)),
            _ => None,
        };
        let (byte, length) = encoded.map_or((*first, 1), |(high, low)| (high << 4 | low, 3));
        decoded.push(byte);
        rest = &after[length - 1..];
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        let mut encoded = String::new();
        encode("a/b+c=ü %41", &mut encoded);
        assert_eq!(encoded, "a%2Fb%2Bc%3D%C3%BC%20%2541");
        assert_eq!(decode(&encoded), "a/b+c=ü %41".as_bytes());
        for (text, decoded) in [("100%", "100%"), ("%4", "%4"), ("%zz%41%2f", "%zzA/"), ("", "")] {
            assert_eq!(decode(text), decoded.as_bytes(), "{text}");
        }
    }
}
