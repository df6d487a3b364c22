//! How numbers, dates and packed bodies are written.

use std::time::Duration;

use super::wire::Marked;

/// Of no time and no system (RFC 1952 2.3)
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// Packs a body as gzip, each piece of it in a block that is stored as it is, so that every byte is
/// known to a client as soon as it comes
///
/// The places of `marks` and `pieces` are those of `coded` from here on. Without a piece there is
/// nothing to pack, and nothing is.
pub(crate) fn gzip(body: &[u8], marks: &mut [Marked], pieces: &mut [(Duration, u32)], coded: &mut Vec<u8>) {
    let count = pieces.len();
    if count == 0 {
        return;
    }
    coded.extend_from_slice(&GZIP_HEAD);
    let (mut from, mut mark) = (0, 0);
    for (number, (_, upto)) in pieces.iter_mut().enumerate() {
        let data = &body[from as usize..*upto as usize];
        let length = u16::try_from(data.len()).expect("no piece is larger than a flood");
        block(coded, false, length);
        let shift = coded.len() as u32 - from;
        coded.extend_from_slice(data);
        while let Some(marked) = marks.get_mut(mark).filter(|marked| marked.known <= *upto) {
            marked.known += shift;
            marked.there += shift;
            mark += 1;
        }
        from = *upto;
        if number + 1 == count {
            block(coded, true, 0);
            coded.extend_from_slice(&crc32(body).to_le_bytes());
            coded.extend_from_slice(&(body.len() as u32).to_le_bytes());
        }
        *upto = coded.len() as u32;
    }
}

/// The head of a stored block (RFC 1951 3.2.4)
fn block(coded: &mut Vec<u8>, is_last: bool, length: u16) {
    coded.push(u8::from(is_last));
    coded.extend_from_slice(&length.to_le_bytes());
    coded.extend_from_slice(&(!length).to_le_bytes());
}

fn crc32(bytes: &[u8]) -> u32 {
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        let crc = crc ^ u32::from(*byte);
        (0..8).fold(crc, |crc, _| (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1)))
    });
    !crc
}

/// A date as HTTP writes it (RFC 9110 5.6.7)
pub(crate) fn http_date(unix_seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, seconds) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Days are counted from 1 March of year 0, so that a leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = (month + 2) % 12;
    let year = year_of_era + era * 400 + u64::from(month < 2);
    format!(
        "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// A number in decimal digits
pub(crate) fn push_number(bytes: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut left = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            return bytes.extend_from_slice(&digits[at..]);
        }
    }
}

/// A number in hexadecimal digits
pub(crate) fn push_hex(bytes: &mut Vec<u8>, number: u32) {
    let digits = (8 - number.leading_zeros() as usize / 4).max(1);
    for digit in (0..digits).rev() {
        bytes.push(b"0123456789abcdef"[(number >> (4 * digit)) as usize & 15]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_http() {
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http_date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(http_date(1_764_547_199), "Sun, 30 Nov 2025 23:59:59 GMT");
        assert_eq!(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    }

    #[test]
    fn numbers_are_written() {
        let mut bytes = Vec::new();
        for number in [0, 7, 10, u64::MAX] {
            push_number(&mut bytes, number);
            bytes.push(b' ');
        }
        for number in [0, 15, 16, 0xabc] {
            push_hex(&mut bytes, number);
            bytes.push(b' ');
        }
        assert_eq!(bytes, b"0 7 10 18446744073709551615 0 f 10 abc ");
    }

    #[test]
    fn a_checksum_is_that_of_gzip() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
