//! Percent-encoding (RFC 3986).

/// Appends `text` with all but the unreserved characters (section 2.3) in their percent-encoding
pub(crate) fn encode(text: &str, encoded: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
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
