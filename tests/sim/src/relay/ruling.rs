//! What holds of an exchange that is over, and of the app's connection once it is.

use steadfast::relay::{Closing, Code, Ending, Exchanged, Timer};

use super::coverage::Coverage;
use super::messages::{Framing, Goes, Request};
use super::peers::Up;
use super::plan::{Answered, Sent, When};
use super::watch::strip_continue;
use super::world::{PAGE, Side};
use super::{Invariant, Violation};

impl Side<'_> {
    /// What holds where an exchange is told as over
    pub(super) fn over(&mut self, exchanged: &Exchanged) -> Result<(), Violation> {
        self.coverage.ending(exchanged.ending);
        let Some(sent) = self.plan.requests.get(self.watch.overs) else {
            return Err(self.wrong(Invariant::Once, "one exchange more than there are requests".to_owned()));
        };
        let request = sent.request.clone();
        for up in self.attempts() {
            if let Err(what) = request.check_sent(&up.got) {
                return Err(self.wrong(Invariant::Request, format!("{:?}: {what}", up.id)));
            }
        }
        self.check_told(exchanged, &request)?;
        let got = self.app.got[self.watch.app_from..].to_vec();
        let (got, continues) = strip_continue(&got);
        if continues > usize::from(request.expects) {
            return Err(self.wrong(Invariant::Answer, format!("{continues} times 100")));
        }
        let said_close = match exchanged.ending {
            Ending::Served => self.check_own(got, 200, None, exchanged, &request)?,
            Ending::Refused(code) => {
                self.check_refusal(code)?;
                self.check_own(got, code.status().as_u16(), Some(code), exchanged, &request)?
            }
            Ending::Passed => self.check_passed(got, exchanged, &request)?,
            Ending::Broken => self.check_broken(got, &request)?,
            Ending::Limit(_) | Ending::AppLeft | Ending::Stopped => {
                self.check_left(got, exchanged.ending, &request)?;
                true
            }
        };
        self.watch.said_close = said_close || exchanged.ending == Ending::Broken;
        let (app, ups) = (self.app.got.len(), self.ups.len());
        self.watch.again(self.now, app, ups);
        Ok(())
    }

    /// What is told of it in numbers
    fn check_told(&self, exchanged: &Exchanged, request: &Request) -> Result<(), Violation> {
        let sends = self.attempts().iter().filter(|up| !up.got.is_empty()).count();
        let is_tapped = !self.plan.has_taps
            || (request.payload.starts_with(&self.watch.tapped_request)
                && self.watch.tapped_request.len() as u64 == exchanged.request_bytes
                && self.watch.tapped_answer.len() as u64 == exchanged.answer_bytes);
        let sent = exchanged.request_bytes as usize;
        if exchanged.sends as usize == sends && sent <= request.payload.len() && is_tapped {
            return Ok(());
        }
        let (told, bytes) = (exchanged.sends, exchanged.answer_bytes);
        let what = format!(
            "{told} sends are told, {sends} were; {sent} and {bytes} bytes, taps {:?}",
            self.watch.taps
        );
        Err(self.wrong(Invariant::Ruling, what))
    }

    fn last(&self) -> Option<(&Up, &Answered)> {
        let up = self.attempts().last()?;
        Some((up, up.answered.as_ref()?))
    }

    fn check_passed(&self, got: &[u8], exchanged: &Exchanged, request: &Request) -> Result<bool, Violation> {
        let Some((up, answered)) = self.last() else {
            return Err(self.wrong(Invariant::Ruling, "passed without an answer".to_owned()));
        };
        let answer = &answered.answer;
        let got = answer.check_passed(got, up.stream.read, request);
        let got = got.map_err(|what| self.wrong(Invariant::Answer, what))?;
        let bytes = if request.is_head { 0 } else { answer.payload.len() as u64 };
        let is_ended = answer.framing != Framing::UntilClose || up.end_told || request.is_head;
        let is_told = exchanged.answer_bytes == bytes
            && exchanged.status.is_some_and(|status| status.as_u16() == answer.status);
        if got.is_whole && is_ended && is_told {
            return Ok(got.says_close);
        }
        let what = format!("passed, {got:?}, {} bytes are told of {bytes}", exchanged.answer_bytes);
        Err(self.wrong(Invariant::Ruling, what))
    }

    fn check_broken(&mut self, got: &[u8], request: &Request) -> Result<bool, Violation> {
        let Some((up, answered)) = self.last().filter(|(up, _)| up.head_read.is_some()) else {
            return Err(self.wrong(Invariant::Ruling, "broken without an answer".to_owned()));
        };
        let answer = &answered.answer;
        let checked = answer.check_passed(got, up.stream.read, request);
        let checked = checked.map_err(|what| self.wrong(Invariant::Answer, what))?;
        let is_whole = answer.framing != Framing::UntilClose && up.is_answer_read_whole();
        if !checked.is_all_fed || is_whole {
            let what = format!("broken: {checked:?}, {} of {} bytes read", up.stream.read, up.answer_length);
            return Err(self.wrong(Invariant::Answer, what));
        }
        self.watch.must_reset = ends_with_connection(answered, request);
        Ok(checked.says_close)
    }

    /// Over before its answer was whole: what the app got is the beginning of one
    fn check_left(&mut self, got: &[u8], ending: Ending, request: &Request) -> Result<(), Violation> {
        let limits = self.limits();
        let begun = self.watch.began.unwrap_or(self.now);
        let is_right = match ending {
            Ending::Limit(Timer::Total) => begun.after(limits.total).is_some_and(|at| at <= self.now),
            Ending::Limit(Timer::Silence) => {
                self.watch.part_at.after(limits.silence).is_some_and(|at| at <= self.now)
            }
            Ending::AppLeft => self.app.has_left,
            Ending::Stopped => self.watch.is_cancelled,
            Ending::Passed | Ending::Served | Ending::Refused(_) | Ending::Limit(_) | Ending::Broken => false,
        };
        if !is_right {
            return Err(self.wrong(Invariant::Ruling, format!("{ending:?} without a reason")));
        }
        let is_own = got.is_empty() || got.starts_with(b"HTTP/1.1 ") || b"HTTP/1.1 ".starts_with(got);
        let Some((up, answered)) = self.last().filter(|(up, _)| up.head_read.is_some()) else {
            let what = format!("no answer begins so: {:?}", String::from_utf8_lossy(got));
            return if is_own { Ok(()) } else { Err(self.wrong(Invariant::Answer, what)) };
        };
        match answered.answer.check_passed(got, up.stream.read, request) {
            Ok(part) => {
                let is_limit = matches!(ending, Ending::Limit(_)) && got.len() > 200 && !part.is_whole;
                self.watch.must_reset = is_limit && ends_with_connection(answered, request);
                Ok(())
            }
            // An overload can be followed by an answer of the relay's own.
            Err(_) if answered.answer.is_overload(up.route) && is_own => Ok(()),
            Err(what) => Err(self.wrong(Invariant::Answer, what)),
        }
    }

    /// Whether the relay had a reason for its own error
    fn check_refusal(&self, code: Code) -> Result<(), Violation> {
        let limits = self.limits();
        let begun = self.watch.began.unwrap_or(self.now);
        let is_past = |bound| begun.after(bound).is_some_and(|at| at <= self.now);
        let last = self.attempts().last();
        let has_answer = last.is_some_and(|up| {
            let is_overload = up.answered.as_ref().is_some_and(|one| one.answer.is_overload(up.route));
            up.head_read.is_some() && !is_overload
        });
        let is_right = match code {
            Code::UpstreamUnreachable => {
                last.is_some_and(|up| up.got.is_empty())
                    && self.failed_connects() > limits.retries.connects as usize
            }
            Code::UpstreamTimeout => is_past(limits.first_byte) || is_past(limits.total),
            Code::UpstreamFailed => {
                last.is_some_and(|up| !up.got.is_empty() && up.end_told && up.head_read.is_none())
            }
            Code::GatewayOverloaded | Code::GatewayDraining => self.watch.refused == Some(code),
            Code::NotFound => self.goes() == Some(Goes::Nowhere),
            Code::BadRequest(_) => self.goes() == Some(Goes::Malformed),
            Code::RequestTimeout => is_past(steadfast::relay::REQUEST_HEAD) && last.is_none(),
            Code::Unauthorized | Code::BadPath => false,
        };
        if is_right && !has_answer {
            return Ok(());
        }
        Err(self.wrong(Invariant::Ruling, format!("{code:?} without a reason")))
    }

    /// An answer of the relay's own, whole; whether it says that the connection closes
    fn check_own(
        &self,
        got: &[u8],
        status: u16,
        code: Option<Code>,
        exchanged: &Exchanged,
        request: &Request,
    ) -> Result<bool, Violation> {
        let text = String::from_utf8_lossy(got);
        let wrong = || self.wrong(Invariant::Answer, format!("no whole answer of the relay's own: {text:?}"));
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(wrong)?;
        let field = |name: &str| {
            let mut lines = head.split("\r\n").skip(1).filter_map(|line| line.split_once(": "));
            lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        let is_to_head = request.is_head && !matches!(code, Some(Code::BadRequest(_) | Code::RequestTimeout));
        let length = field("content-length").and_then(|length| length.parse().ok());
        let is_whole = if is_to_head { body.is_empty() } else { length == Some(body.len()) };
        let is_marked = match code {
            None => is_to_head || body.as_bytes() == PAGE,
            Some(code) => {
                let should = match code {
                    Code::UpstreamUnreachable
                    | Code::GatewayOverloaded
                    | Code::GatewayDraining
                    | Code::RequestTimeout => None,
                    Code::UpstreamTimeout
                    | Code::UpstreamFailed
                    | Code::NotFound
                    | Code::Unauthorized
                    | Code::BadPath
                    | Code::BadRequest(_) => Some("false"),
                };
                (is_to_head || body.contains(code.name()))
                    && field("x-request-id") == Some(&exchanged.request_id)
                    && field("x-should-retry") == should
            }
        };
        if head.starts_with(&format!("HTTP/1.1 {status} ")) && is_whole && is_marked {
            return Ok(field("connection") == Some("close"));
        }
        Err(wrong())
    }

    /// What holds once the app's connection is over
    pub(super) fn check_end(&self) -> Result<(), Violation> {
        let open = |up: &&Up| !up.is_closed && up.opening != super::peers::Opening::Over;
        if let Some(up) = self.ups.iter().find(open) {
            return Err(self.wrong(Invariant::Closed, format!("{:?} is never closed", up.id)));
        }
        if self.watch.began.is_some() {
            let what = format!("the end of exchange {} is never told", self.watch.overs + 1);
            return Err(self.wrong(Invariant::Once, what));
        }
        if self.app.got.len() > self.watch.app_from {
            let more = String::from_utf8_lossy(&self.app.got[self.watch.app_from..]);
            return Err(self.wrong(Invariant::Answer, format!("bytes behind the last answer: {more:?}")));
        }
        if self.watch.must_reset && self.watch.done != Some(Closing::Reset) {
            let what = "an answer that broke off ends like one that is whole".to_owned();
            return Err(self.wrong(Invariant::Answer, what));
        }
        Ok(())
    }
}

/// Whether only the end of the app's connection ends the answer
fn ends_with_connection(answered: &Answered, request: &Request) -> bool {
    let by_end = matches!(answered.answer.framing, Framing::UntilClose | Framing::Chunked);
    by_end && request.is_old && !request.is_head
}

impl Coverage {
    pub(super) fn answer(&mut self, answered: &Answered) {
        self.met(match answered.answer.framing {
            Framing::None => "answer without body",
            Framing::Length => "answer length",
            Framing::Chunked => "answer chunked",
            Framing::UntilClose => "answer until close",
        });
        let rows = [
            (answered.answer.has_interim, "answer interim"),
            (answered.answer.is_overload(1), "answer overload"),
            (answered.when == When::Early, "answer early"),
            (answered.surplus > 0, "answer surplus"),
            (answered.cut.is_some(), "answer cut"),
            (answered.answer.broken_at.is_some(), "answer no http"),
            (answered.reads.is_some(), "provider stops reading"),
        ];
        rows.into_iter().filter(|(is_met, _)| *is_met).for_each(|(_, row)| self.met(row));
    }

    pub(super) fn request(&mut self, sent: &Sent) {
        let request = &sent.request;
        let rows = [
            (sent.is_pipelined, "pipelined"),
            (request.is_old, "http/1.0"),
            (request.expects, "expect"),
            (request.framing == Framing::Chunked, "chunked request"),
            (sent.half.is_some(), "half request"),
        ];
        rows.into_iter().filter(|(is_met, _)| *is_met).for_each(|(_, row)| self.met(row));
    }
}
