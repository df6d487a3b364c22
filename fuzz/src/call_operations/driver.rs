//! A driver in virtual time.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, Version};
use steadfast::call::{AttemptId, Call, Env, Request, State};
use steadfast::config::RequestConfig;
use steadfast::http1::ResponseHead;
use steadfast::machine::{Event, Machine, Misuse};
use steadfast::time::{Bound, Instant};

use super::record::Record;

/// More steps than any play takes: a call that goes round in circles fails instead of hanging
const MAX_STEPS: usize = 1_000_000;
/// Wall-clock time when a call is made: Sun, 06 Nov 1994 08:49:30 GMT
const UNIX_AT_START: Duration = Duration::from_secs(784_111_770);
/// When a call is made; far from the origin of time, so that nothing leans on that
const START: Instant = Instant::from_nanos(1_000_000_000_000);
/// How long the body of an error answer may take (rule STR-6)
const ERROR_BODY: Duration = Duration::from_secs(5);

/// A call, its driver, and the server's side of its connection
pub(super) struct Driver {
    call: Call,
    record: Record,
    now: Instant,
    eager: bool,
    drops: u16,
    steps: usize,
    /// What the server has sent and nobody has read
    socket: Vec<u8>,
    chunked: bool,
}

impl Driver {
    pub(super) fn new(request: Request, config: RequestConfig, seed: u64, eager: bool, drops: u16) -> Self {
        let env = Env { seed, unix_at_origin: UNIX_AT_START - START.since_origin() };
        Self {
            call: Call::new(request, config, env, START),
            record: Record::new(config),
            now: START,
            eager,
            drops,
            steps: 0,
            socket: Vec::new(),
            chunked: false,
        }
    }

    /// The connection that was asked for last
    pub(super) fn link(&self) -> Option<AttemptId> {
        self.record.opened.last().copied()
    }

    /// The connection that was asked for first, if it is another one
    pub(super) fn first_link(&self) -> Option<AttemptId> {
        self.record.opened.first().copied().filter(|first| Some(*first) != self.link())
    }

    /// Bytes that are to be written
    pub(super) fn outgoing(&self) -> usize {
        let parts = self.link().map(|link| self.call.outgoing(link));
        parts.map_or(0, |parts| parts.iter().map(|part| part.len()).sum())
    }

    /// The server sends what `words` makes, for a body in chunks or not
    pub(super) fn server_says(&mut self, words: impl FnOnce(bool) -> Vec<u8>) {
        const CHUNKED: &[u8] = b"transfer-encoding: chunked\r\n";
        let words = words(self.chunked);
        if words.starts_with(b"HTTP/") {
            self.chunked = words.windows(CHUNKED.len()).any(|window| window == CHUNKED);
        }
        self.socket.extend_from_slice(&words);
    }

    /// Reads so many bytes, where the machine wants some
    pub(super) fn read(&mut self, bytes: usize) {
        let wanted = self.record.wait.as_ref().and_then(|wait| wait.io).filter(|io| io.read);
        let Some(io) = wanted else { return };
        let piece: Vec<u8> = self.socket.drain(..bytes.min(self.socket.len())).collect();
        self.feed(Event::Received(io.link, &piece));
    }

    /// Reads all there is, wanted or not
    pub(super) fn read_all(&mut self) {
        let piece = std::mem::take(&mut self.socket);
        if let Some(link) = self.link() {
            self.feed(Event::Received(link, &piece));
        }
    }

    /// Lets time pass up to the next deadline, and reports it
    pub(super) fn expire(&mut self) {
        let Some((deadline, _)) = self.record.deadline() else { return };
        self.now = self.now.max(deadline);
        self.feed(Event::Elapsed);
    }

    /// Lets time pass; deadlines before the end of it expire
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.record.deadline().is_some_and(|(deadline, _)| deadline < end) {
            self.expire();
        }
        self.now = self.now.max(end);
    }

    /// Lets time pass, and reports nothing of it
    pub(super) fn late(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// Reports nothing at an instant that is past
    pub(super) fn back(&mut self, time: Duration) {
        let now = self.now;
        self.now = Instant::from_nanos((now.since_origin() - time).as_nanos() as u64);
        self.feed(Event::Taken);
        self.now = now;
    }

    /// Feeds an event and takes all steps that follow from it; refuses to do so where that is misuse
    pub(super) fn feed(&mut self, event: Event<'_, Call>) {
        let happens = self.record.happens(&event, self.now, &self.call);
        if self.try_feed(event).is_err() {
            self.record.is_as_it_was(happens, &self.call);
        } else {
            self.record.has_happened(happens, self.now, &self.call);
        }
    }

    fn try_feed(&mut self, event: Event<'_, Call>) -> Result<(), Misuse> {
        let now = self.now;
        self.record.trace.push(format!("{now:?} {event:?}"));
        let mut next = Some(event);
        loop {
            let mut drain = match next.take() {
                Some(event) => {
                    let drain = self.call.handle(now, event)?;
                    if drops_here(&mut self.steps, self.drops) {
                        continue;
                    }
                    drain
                }
                None => self.call.drain(),
            };
            let at_rest = loop {
                if !self.record.step(now, drain.next()) {
                    break true;
                }
                if drops_here(&mut self.steps, self.drops) {
                    break false;
                }
            };
            drop(drain);
            if at_rest {
                if !(self.eager && self.record.wait.as_ref().is_some_and(|wait| wait.taken)) {
                    return Ok(());
                }
                self.record.trace.push(format!("{now:?} Taken"));
                next = Some(Event::Taken);
            }
        }
    }

    /// From here on nothing more comes, and the consumer is there; returns each event and step
    pub(super) fn finish(mut self) -> Vec<String> {
        let quiet = self.now;
        self.eager = true;
        self.feed(Event::Taken);
        while self.record.done.is_none() {
            assert!(self.record.deadline().is_some(), "INV-1: it waits for ever");
            self.expire();
        }
        let config = self.call.config();
        let silence = [
            config.stream_idle_timeout(),
            config.content_idle_timeout(),
            config.first_content_timeout(),
            Bound::Limited(config.after_marker()),
            Bound::Limited(ERROR_BODY),
        ];
        let longest = silence.into_iter().filter_map(Bound::limit).max().unwrap_or_default();
        let deadline = config.total_deadline().limit().expect("it is set");
        self.record.ended_by((START + deadline).max(quiet + longest));
        assert_eq!(self.call.state(), State::Over);
        for event in [Event::Elapsed, Event::Taken, Event::Cancel] {
            self.feed(event);
        }
        self.record.trace
    }
}

/// Whether the drain is dropped at this point; each has a bit of `drops`, in turn
fn drops_here(steps: &mut usize, drops: u16) -> bool {
    assert!(*steps < MAX_STEPS, "the call goes round in circles");
    *steps += 1;
    drops >> (*steps % 16) & 1 != 0
}

/// A head that another transport reports
pub(super) fn head(which: u8) -> ResponseHead {
    const STATUSES: [u16; 8] = [200, 200, 200, 204, 400, 429, 503, 101];
    const TYPES: [&str; 4] = ["text/event-stream", "application/json", "application/x-ndjson", "text/html"];
    let status = STATUSES[usize::from(which % 8)];
    let content_type = TYPES[usize::from(which / 8 % 4)];
    ResponseHead {
        version: Version::HTTP_11,
        status: StatusCode::from_u16(status).expect("a status"),
        reason: Bytes::new(),
        headers: HeaderMap::from_iter([(http::header::CONTENT_TYPE, HeaderValue::from_static(content_type))]),
    }
}
