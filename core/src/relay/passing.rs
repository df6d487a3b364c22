//! The answer on its way from the provider to the app (rule RLY-1).

use std::io::Write as _;

use http::{StatusCode, Version};

use super::event::{Ending, Link, State};
use super::{Exchange, Found};
use crate::call::CloseMode;
use crate::http1::{Fields, ForwardedBody, ForwardedResponse, Part, ResponseHead};
use crate::outcome::Reason;

/// How the answer's body goes to the app
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// As it came, chunk framing and all
    Verbatim,
    /// In chunks made here: the provider ends it with its connection, and a break must be seen
    Chunks,
    /// Without the chunk framing, for an app that does not know it; the connection's end ends it
    Payload,
}

/// An answer that is being passed on
pub(super) struct Passing {
    mode: Mode,
    status: StatusCode,
    fields: Fields,
    /// Where in the input the bytes begin that are passed as they came
    from: Option<usize>,
    /// Up to where the input is parsed
    until: usize,
    is_until_close: bool,
}

impl Passing {
    /// Whether only the end of the app's connection ends it
    pub(super) fn ends_with_the_connection(&self) -> bool {
        self.is_until_close
    }
}

impl Exchange {
    /// Begins to pass an answer on
    pub(super) fn pass_on(&mut self, head: ResponseHead) {
        let keeps_alive = self.front.keeps_alive && !self.is_draining;
        let Some(up) = &mut self.current.up else { return };
        let version = self.current.request.as_ref().map_or(Version::HTTP_11, |request| request.version);
        let is_old = version == Version::HTTP_10;
        let (mode, body) = match up.decoder.body_of(head.status) {
            ForwardedBody::Chunked | ForwardedBody::UntilClose if is_old => {
                (Mode::Payload, ForwardedBody::UntilClose)
            }
            ForwardedBody::UntilClose => (Mode::Chunks, ForwardedBody::Chunked),
            body @ (ForwardedBody::Chunked | ForwardedBody::Length(_) | ForwardedBody::None) => {
                (Mode::Verbatim, body)
            }
        };
        let is_until_close = body == ForwardedBody::UntilClose;
        self.front.keeps_alive = keeps_alive && !is_until_close;
        let fields = up.decoder.take_fields();
        let forwarded = ForwardedResponse {
            version,
            status: head.status,
            reason: &head.reason,
            fields: &fields,
            body,
            keep_alive: self.front.keeps_alive,
        };
        if forwarded.encode(self.front.window_mut()).is_err() {
            return self.broke(Reason::Protocol);
        }
        self.current.status = Some(head.status);
        self.current.passing =
            Some(Passing { mode, status: head.status, fields, from: None, until: 0, is_until_close });
        self.current.last_part = self.now;
        self.enter(State::Answering);
    }

    /// Status and fields of the answer that is being passed on
    pub(super) fn answer_head(&self) -> Option<(StatusCode, &Fields)> {
        let passing = self.current.passing.as_ref()?;
        Some((passing.status, &passing.fields))
    }

    /// Parses what the provider sent
    pub(super) fn read_up(&mut self, input: &[u8], used: &mut usize) -> Found {
        loop {
            let at = *used;
            let Some(up) = &mut self.current.up else {
                *used = input.len();
                return Found::Again;
            };
            let (read, part) = match up.decoder.next(&input[at..]) {
                Ok(read) => read,
                Err(error) => {
                    let found = self.passed(at).unwrap_or(Found::Again);
                    *used = input.len();
                    self.upstream_broke_protocol(error);
                    return found;
                }
            };
            *used += read;
            if read > 0
                && let Some(Passing { mode: Mode::Verbatim, from, until, .. }) = &mut self.current.passing
            {
                from.get_or_insert(at);
                *until = *used;
            }
            match part {
                None if read > 0 && *used < input.len() => {}
                None => {
                    return self.passed(*used).unwrap_or(Found::Dry);
                }
                Some(Part::Interim(_)) => {}
                Some(Part::Head(head)) => {
                    self.answered(head);
                    return Found::Again;
                }
                Some(Part::Body(range)) => {
                    let range = at + range.start..at + range.end;
                    self.current.answer_bytes += range.len() as u64;
                    self.body_came(&input[range.clone()]);
                    if self.has_taps {
                        return Found::TapAnswer(range);
                    }
                }
                Some(Part::End(end)) => {
                    let found = self.passed(*used).unwrap_or(Found::Again);
                    let is_last = *used == input.len() || planted!(RelaySurplusReused);
                    *used = input.len();
                    self.answer_ended(end.reusable && is_last);
                    return found;
                }
            }
        }
    }

    /// What is parsed and not lent yet is copied: the driver's buffer goes
    pub(super) fn keep_parsed(&mut self, input: &[u8]) {
        if let Some(Passing { from, until, .. }) = &mut self.current.passing
            && let Some(from) = from.take()
        {
            self.front.push(&input[from..*until]);
        }
    }

    /// A piece of the answer's body came
    fn body_came(&mut self, piece: &[u8]) {
        let Some(passing) = &mut self.current.passing else { return };
        match passing.mode {
            Mode::Verbatim => {}
            Mode::Payload => self.front.push(piece),
            Mode::Chunks => {
                let window = self.front.window_mut();
                write!(window, "{:x}\r\n", piece.len()).expect("writing to a Vec cannot fail");
                window.extend_from_slice(piece);
                window.extend_from_slice(b"\r\n");
            }
        }
    }

    /// What was parsed up to here, and goes on as it came
    fn passed(&mut self, until: usize) -> Option<Found> {
        let from = self.current.passing.as_mut()?.from.take()?;
        (from < until).then_some(Found::Pass(Link::App, from..until))
    }

    /// The answer is whole
    pub(super) fn answer_ended(&mut self, is_reusable: bool) {
        if self.current.passing.is_none() {
            return;
        }
        if matches!(&self.current.passing, Some(passing) if passing.mode == Mode::Chunks)
            && !planted!(RelayLastChunkLost)
        {
            self.front.push(b"0\r\n\r\n");
        }
        if is_reusable && self.is_request_out() {
            self.attempt_kept(CloseMode::Keep);
        } else {
            self.attempt_ended(Reason::EndOfBody);
        }
        self.flush(Ending::Passed);
    }
}
