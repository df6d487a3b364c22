//! What gzip puts around deflate data (RFC 1952 2.3).

use super::crc::Crc;

/// The two bytes that begin a member
pub(super) const MAGIC: [u8; 2] = [0x1F, 0x8B];

/// Bound on a member's header; names and comments in it are skipped
pub(super) const MAX_HEADER_BYTES: usize = 64 << 10;

/// The header of a member, byte by byte
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    part: Part,
    /// Bytes of the part that are still to come, where it has a length
    left: usize,
    /// The last two bytes, as a number
    number: u16,
    flags: u8,
    /// Bytes of the header so far
    size: usize,
    crc: Crc,
}

/// The parts of a header, in their order
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Fixed,
    ExtraLength,
    Extra,
    Name,
    Comment,
    Checksum,
}

/// The checksum and the length behind a member's data
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trailer {
    number: u64,
    size: u32,
}

const FIXED_BYTES: usize = 10;
const DEFLATE: u8 = 8;
const HAS_CHECKSUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

impl Header {
    pub(super) fn new() -> Self {
        Self { part: Part::Fixed, left: FIXED_BYTES, number: 0, flags: 0, size: 0, crc: Crc::new() }
    }

    /// Reads one byte; returns whether it was the last
    pub(super) fn read(&mut self, byte: u8) -> Result<bool, &'static str> {
        let at = self.size;
        self.size += 1;
        self.left = self.left.saturating_sub(1);
        self.number = u16::from(byte) << 8 | self.number >> 8;
        if self.part != Part::Checksum {
            self.crc.add(&[byte]);
        }
        let ended = match self.part {
            Part::Fixed => {
                self.read_fixed(at, byte)?;
                self.left == 0
            }
            Part::ExtraLength | Part::Extra | Part::Checksum => self.left == 0,
            Part::Name | Part::Comment => byte == 0,
        };
        if ended && self.part == Part::Checksum && self.number != self.crc.value() as u16 {
            return Err("the checksum does not fit the gzip header");
        }
        let done = ended && self.advance();
        if !done && self.size == MAX_HEADER_BYTES {
            return Err("the gzip header is too long");
        }
        Ok(done)
    }

    fn read_fixed(&mut self, at: usize, byte: u8) -> Result<(), &'static str> {
        match at {
            0 | 1 if byte != MAGIC[at] => Err("not gzip data"),
            2 if byte != DEFLATE => Err("gzip data in an unknown format"),
            3 if byte & RESERVED != 0 => Err("gzip data in an unknown format"),
            3 => {
                self.flags = byte;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Goes on to the next part that there is; returns whether there is none
    fn advance(&mut self) -> bool {
        loop {
            let (part, length, is_there) = match self.part {
                Part::Fixed => (Part::ExtraLength, 2, self.flags & HAS_EXTRA != 0),
                Part::ExtraLength if self.flags & HAS_EXTRA == 0 => (Part::Extra, 0, false),
                Part::ExtraLength => (Part::Extra, usize::from(self.number), self.number > 0),
                Part::Extra => (Part::Name, 0, self.flags & HAS_NAME != 0),
                Part::Name => (Part::Comment, 0, self.flags & HAS_COMMENT != 0),
                Part::Comment => (Part::Checksum, 2, self.flags & HAS_CHECKSUM != 0),
                Part::Checksum => return true,
            };
            self.part = part;
            self.left = length;
            if is_there {
                return false;
            }
        }
    }
}

impl Trailer {
    /// Reads one byte of eight; returns the checksum and the length with the last one
    pub(super) fn read(&mut self, byte: u8) -> Option<(u32, u32)> {
        self.number = u64::from(byte) << 56 | self.number >> 8;
        self.size += 1;
        (self.size == 8).then_some((self.number as u32, (self.number >> 32) as u32))
    }
}
