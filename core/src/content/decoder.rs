//! The decoder: wrappers around deflate data, and the end of it.

use std::fmt;

use super::crc::Crc;
use super::gzip::{Header, MAGIC, Trailer};
use super::inflate::{Inflater, Stop};
use super::{Coding, ContentError, Decoded};

#[cfg(test)]
mod tests;

/// Decodes a compressed body, however its bytes are split
///
/// Memory held: about 44 KiB, whatever comes. However far a body expands, only as much of it comes
/// out as the caller has room for, and no input is used ahead of that.
///
/// ```
/// use steadfast::content::Decoder;
///
/// # let body = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xCB, 0xC8, 4, 0, 0xAC, 0x2A, 0x93, 0xD8, 2, 0, 0, 0];
/// let mut decoder = Decoder::new("gzip")?.expect("this body is compressed");
/// let mut text = Vec::new();
/// for mut input in body.chunks(5) {
///     loop {
///         let mut output = [0; 1024];
///         let decoded = decoder.decode(input, &mut output)?;
///         text.extend_from_slice(&output[..decoded.produced]);
///         input = &input[decoded.consumed..];
///         if !decoded.more {
///             break;
///         }
///     }
/// }
/// decoder.finish()?;
/// assert_eq!(text, b"hi");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Decoder {
    inflater: Inflater,
    state: State,
    /// Bytes of the compressed body so far
    got: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Before the first byte of deflate data, which may have its zlib wrapper or not
    Deflate,
    /// In the header of a gzip member
    Header(Header),
    /// In deflate data
    Data(Option<Sum>),
    /// Behind the data of a gzip member
    Trailer(Sum, Trailer),
    /// Behind a gzip member, and perhaps behind the first byte of another
    Between {
        magic: bool,
    },
    /// Behind the end
    Over,
    Failed(ContentError),
}

/// What a gzip member's trailer must say
#[derive(Clone, Copy, Debug)]
struct Sum {
    crc: Crc,
    length: u32,
}

impl Decoder {
    pub(super) fn of(coding: Coding) -> Option<Self> {
        let state = match coding {
            Coding::Gzip => State::Header(Header::new()),
            Coding::Deflate => State::Deflate,
        };
        Some(Self { inflater: Inflater::new(), state, got: 0 })
    }

    /// Decodes on, to the end of the input or until `output` is full
    ///
    /// Where [`Decoded::more`] says so, the rest of the input is for the next call; an `output` of no
    /// length gets nowhere.
    ///
    /// Errors: [`ContentError::Corrupt`], after all that came before the damage was written, and
    /// again at every further call.
    pub fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Result<Decoded, ContentError> {
        let mut consumed = 0;
        let mut produced = 0;
        let more = loop {
            produced += self.inflater.take(&mut output[produced..]);
            if !self.inflater.ready().is_empty() {
                break true;
            }
            if let State::Failed(error) = self.state {
                if produced == 0 {
                    return Err(error);
                }
                break true;
            }
            match self.step(&input[consumed..]) {
                Ok(Some(used)) => consumed += used,
                Ok(None) => break false,
                Err(reason) => self.state = State::Failed(ContentError::Corrupt(reason)),
            }
        };
        self.got += consumed as u64;
        Ok(Decoded { consumed, produced, more })
    }

    /// Whether all came, once the body is over and there is no more to decode
    ///
    /// Errors: [`ContentError::Incomplete`], or what [`Decoder::decode`] failed with.
    pub fn finish(&self) -> Result<(), ContentError> {
        match self.state {
            State::Failed(error) => Err(error),
            State::Between { .. } | State::Over => Ok(()),
            _ if self.got == 0 => Ok(()),
            State::Deflate | State::Header(_) | State::Data(_) | State::Trailer(..) => {
                Err(ContentError::Incomplete { got: self.got })
            }
        }
    }

    /// Goes on by one byte, or one run of deflate data, with nothing ready before; returns how many
    /// bytes were used, or `None` if there is nothing to do without more
    fn step(&mut self, input: &[u8]) -> Result<Option<usize>, &'static str> {
        if let State::Data(sum) = self.state {
            return self.inflate(sum, input);
        }
        let Some(&byte) = input.first() else { return Ok(None) };
        let mut used = 1;
        self.state = match self.state {
            State::Deflate => {
                used = 0;
                self.inflater.restart(is_zlib(byte));
                State::Data(None)
            }
            State::Header(mut header) => {
                if header.read(byte)? {
                    self.inflater.restart(false);
                    State::Data(Some(Sum { crc: Crc::new(), length: 0 }))
                } else {
                    State::Header(header)
                }
            }
            State::Trailer(sum, mut trailer) => match trailer.read(byte) {
                None => State::Trailer(sum, trailer),
                Some((crc, length)) if (crc, length) == (sum.crc.value(), sum.length) => {
                    State::Between { magic: false }
                }
                Some(_) => return Err("the checksum does not fit the data"),
            },
            State::Between { magic: false } if byte == MAGIC[0] => State::Between { magic: true },
            State::Between { magic: true } if byte == MAGIC[1] => {
                let mut header = Header::new();
                for byte in MAGIC {
                    header.read(byte)?;
                }
                State::Header(header)
            }
            State::Between { .. } | State::Over | State::Data(_) | State::Failed(_) => {
                used = input.len();
                State::Over
            }
        };
        Ok(Some(used))
    }

    fn inflate(&mut self, mut sum: Option<Sum>, input: &[u8]) -> Result<Option<usize>, &'static str> {
        let (used, stop) = self.inflater.run(input);
        let ready = self.inflater.ready();
        if let Some(sum) = &mut sum {
            sum.crc.add(ready);
            sum.length = sum.length.wrapping_add(ready.len() as u32);
        }
        let idle = used == 0 && ready.is_empty();
        match (stop?, sum) {
            (Stop::End, None) => self.state = State::Over,
            (Stop::End, Some(sum)) => self.state = State::Trailer(sum, Trailer::default()),
            (Stop::Input, _) if idle => return Ok(None),
            (Stop::Input | Stop::Window, _) => self.state = State::Data(sum),
        }
        Ok(Some(used))
    }
}

/// Where the decoder is: what the body says is not for a log
impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("got", &self.got).finish_non_exhaustive()
    }
}

/// Whether deflate data that begins with `byte` is in a zlib wrapper
///
/// Without one, such a byte would begin a stored block with a bit set in its padding, which no
/// encoder writes.
fn is_zlib(byte: u8) -> bool {
    const METHOD_DEFLATE: u8 = 8;
    byte & 0x0F == METHOD_DEFLATE
}
