//! What a server sends, byte by byte, and what each of these bytes makes known.

use std::fmt::Write as _;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode, Version};
use steadfast::call::Shape;
use steadfast::config::RequestConfig;
use steadfast::dialect::Dialect;
use steadfast::http1::ResponseHead;

use super::plan::{ContentType, Cut, End, Exchange, Framing, Head, Piece, Problem, RetryAfter};
use super::speech::{self, MAX_FLOOD, SLACK, Said};

/// Bytes after the end of a response, which begin none
pub(crate) const SURPLUS: &[u8] = b"surplus\r\n";

/// What a client knows once it has read so far
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// An interim head
    Interim,
    /// The final head
    Head,
    /// Text of the first choice, the next token
    Text,
    /// Another piece of the answer, whose words are not compared
    Delta,
    /// The same, of a choice that was not known before
    OpensChoice,
    /// The answer is whole; whether the provider stopped the model early
    Marker(bool),
    /// It is whole still, unless a choice has opened that this finishes
    MarkerAgain(bool),
    /// The answer is over
    Sentinel,
    /// The provider failed
    InBand(Problem),
    /// The provider refused the prompt
    Blocked,
    /// Data that is not JSON
    NotJson,
    /// Nothing of the answer
    Noise(Piece),
    /// The peer has begun to break a protocol or a bound, which may be noticed from here on
    MayBreak,
    /// It has done so beyond doubt
    Broken,
    /// The message has ended by its framing
    BodyEnd,
}

/// A mark and its place
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marked {
    /// Bytes after which it is known
    pub(crate) known: u32,
    /// Bytes after which it is there, should the stream end properly before `known`
    pub(crate) there: u32,
    pub(crate) mark: Mark,
}

/// The body of a response under construction
#[derive(Debug, Default)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    marks: Vec<Marked>,
    /// All tokens, one after the other, and where each ends
    text: String,
    tokens: Vec<u32>,
    /// Which attempt of the run this is, for the tokens
    instance: u32,
}

impl Body {
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn fill(&mut self, bytes: usize) {
        self.bytes.resize(self.bytes.len() + bytes, b'x');
    }

    /// Adds a text that nothing else in the run has
    pub(crate) fn token(&mut self) {
        let from = self.text.len();
        // Writing to a string cannot fail.
        _ = write!(self.text, "<{}.{}>", self.instance, self.tokens.len());
        self.tokens.push(self.text.len() as u32);
        self.bytes.extend_from_slice(&self.text.as_bytes()[from..]);
    }

    /// Adds an id that only this attempt has
    pub(crate) fn id(&mut self) {
        self.push("i");
        push_number(&mut self.bytes, self.instance.into());
    }

    /// Adds a text of another choice than the first
    pub(crate) fn other_token(&mut self) {
        self.push("<other>");
    }

    pub(crate) fn mark(&mut self, mark: Mark) {
        let at = self.bytes.len() as u32;
        self.marks.push(Marked { known: at, there: at, mark });
    }

    /// Begins the event whose data follows
    pub(crate) fn begin(&mut self, dialect: Dialect) {
        if dialect != Dialect::Ollama {
            self.push("data: ");
        }
    }

    /// Ends the event, and says what it makes known
    pub(crate) fn end(&mut self, dialect: Dialect, mark: Mark) {
        let there = self.bytes.len() as u32;
        self.push(if dialect == Dialect::Ollama { "\n" } else { "\n\n" });
        self.marks.push(Marked { known: self.bytes.len() as u32, there, mark });
    }

    pub(crate) fn event(&mut self, dialect: Dialect, data: &str, mark: Mark) {
        self.begin(dialect);
        self.push(data);
        self.end(dialect, mark);
    }
}

/// The server's side of one connection for one exchange
#[derive(Debug, Default)]
pub(crate) struct Wire {
    /// All that is sent; without the head, and out of its transfer coding, where facts are reported
    pub(crate) bytes: Vec<u8>,
    pub(crate) marks: Vec<Marked>,
    /// Up to where the bytes have come, by the time since the answer began
    pub(crate) sends: Vec<(Duration, u32)>,
    /// How the server's side ends, by the same time
    pub(crate) end: (Duration, End),
    /// The text that is said, and where each token of it ends
    pub(crate) text: String,
    pub(crate) tokens: Vec<u32>,
    /// Where the message ends by its framing, and where its body begins
    pub(crate) body_end: Option<u32>,
    pub(crate) body_start: u32,
    /// The body was not cut
    pub(crate) is_whole: bool,
    body: Body,
    pieces: Vec<(Duration, u32)>,
}

/// Who asked, and how
#[derive(Clone, Copy)]
pub(crate) struct Asked<'p> {
    pub(crate) dialect: Option<Dialect>,
    pub(crate) shape: Shape,
    pub(crate) config: &'p RequestConfig,
    /// The wall clock at the run's start
    pub(crate) unix_seconds: u64,
    /// Which attempt of the run this is
    pub(crate) instance: u32,
    /// The transport reports facts
    pub(crate) facts: bool,
}

impl Wire {
    /// A connection on which nothing comes but its end
    pub(crate) fn only_end(&mut self, end: (Duration, End)) {
        self.clear();
        self.end = end;
    }

    /// The whole body, out of its framing and before it was cut
    pub(crate) fn said(&self) -> &[u8] {
        &self.body.bytes
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.marks.clear();
        self.sends.clear();
        self.text.clear();
        self.tokens.clear();
        self.body.bytes.clear();
        self.body.marks.clear();
        self.body.text.clear();
        self.body.tokens.clear();
        self.pieces.clear();
        self.body_end = None;
        self.body_start = 0;
        self.is_whole = true;
    }

    /// Plays `exchange` to whoever asked
    pub(crate) fn render(&mut self, exchange: &Exchange, asked: Asked<'_>) {
        self.clear();
        self.body.instance = asked.instance;
        self.render_body(exchange, asked);
        std::mem::swap(&mut self.text, &mut self.body.text);
        std::mem::swap(&mut self.tokens, &mut self.body.tokens);
        let mut at = exchange.delay;
        if !asked.facts {
            for _ in 0..exchange.interims {
                self.bytes.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
                self.mark(Mark::Interim);
                self.sent(at);
                at += exchange.delay;
            }
            self.render_head(exchange, asked);
        }
        self.sent(at);
        self.body_start = self.bytes.len() as u32;
        let framing = if asked.facts { Framing::Length } else { exchange.head.framing };
        if !has_body(exchange.head.status) {
            self.body.bytes.clear();
            self.ends_at(asked, true);
        } else if self.frame(framing, &mut at) {
            self.ends_at(asked, framing != Framing::Eof);
        }
        if let Some(pause) = exchange.surplus
            && self.body_end.is_some()
            && !asked.facts
        {
            at += pause;
            self.bytes.extend_from_slice(SURPLUS);
            self.sent(at);
        }
        if let Some(cut) = exchange.cut {
            let whole = self.bytes.len() as u32;
            let kept = match cut {
                Cut::At(part) => (((u64::from(whole) + 1) * u64::from(part)) >> 16) as u32,
                Cut::Back(bytes) => whole.saturating_sub(bytes),
            };
            self.cut_at(kept, exchange.delay);
        }
        let last = self.sends.last().map_or(exchange.delay, |(at, _)| *at);
        self.end = (last + exchange.end.0, exchange.end.1);
    }

    fn cut_at(&mut self, kept: u32, delay: Duration) {
        self.is_whole = kept as usize >= self.bytes.len();
        self.bytes.truncate(kept as usize);
        self.marks.retain(|marked| marked.there <= kept);
        let sent_whole = self.sends.iter().take_while(|(_, upto)| *upto <= kept).count();
        let at = self.sends.get(sent_whole).map_or(delay, |(at, _)| *at);
        self.sends.truncate(sent_whole);
        if self.sends.last().is_none_or(|(_, upto)| *upto < kept) {
            self.sends.push((at, kept));
        }
        self.body_end = self.body_end.filter(|end| *end <= kept);
    }

    fn render_body(&mut self, exchange: &Exchange, asked: Asked<'_>) {
        let Self { body, pieces, .. } = self;
        let head = &exchange.head;
        let first = exchange.pieces.first().map_or(Duration::ZERO, |(pause, _)| *pause);
        let floods = exchange.pieces.iter().any(|(_, piece)| *piece == Piece::Flood);
        let max_body = asked.config.max_body_bytes();
        if !head.is_answer(asked.dialect.is_some()) {
            if head.content_type == ContentType::Html {
                body.push("<html>");
            }
            body.push(speech::error_body(head.problem));
            if floods && max_body <= MAX_FLOOD {
                body.mark(Mark::MayBreak);
                body.fill(max_body + SLACK);
                body.mark(Mark::Broken);
            }
        } else if let (Some(dialect), Shape::Stream, false) =
            (asked.dialect, asked.shape, head.content_type == ContentType::WholeJson)
        {
            let mut said = Said::default();
            for (pause, piece) in &exchange.pieces {
                let before = body.bytes.len();
                speech::say(body, &mut said, dialect, *piece, asked.config.max_event_bytes());
                if body.bytes.len() > before {
                    pieces.push((*pause, body.bytes.len() as u32));
                }
            }
            return;
        } else {
            let (before, after) = asked.dialect.map_or(("", ""), speech::whole);
            body.push(before);
            body.token();
            if floods && max_body <= MAX_FLOOD {
                body.mark(Mark::MayBreak);
                body.fill(max_body + SLACK);
                body.mark(Mark::Broken);
            }
            body.push(after);
        }
        // For two of them a document is a stream of one event; for the others it is the answer once it is
        // whole, whatever the message still owes.
        if asked.shape == Shape::Stream && head.is_answer(asked.dialect.is_some()) {
            match asked.dialect {
                Some(Dialect::Gemini) => {
                    body.mark(Mark::Text);
                    body.mark(Mark::Marker(false));
                }
                Some(dialect @ Dialect::Ollama) => {
                    body.end(dialect, Mark::Text);
                    let there = body.bytes.len() as u32 - 1;
                    body.marks.push(Marked { known: there + 1, there, mark: Mark::Sentinel });
                }
                Some(_) => {
                    body.mark(Mark::Text);
                    body.mark(Mark::Sentinel);
                }
                None => {}
            }
        }
        pieces.push((first, body.bytes.len() as u32));
    }

    fn render_head(&mut self, exchange: &Exchange, asked: Asked<'_>) {
        let head = &exchange.head;
        let start = self.bytes.len();
        let bytes = &mut self.bytes;
        bytes.extend_from_slice(b"HTTP/1.1 ");
        push_number(bytes, u64::from(head.status));
        bytes.extend_from_slice(b" So\r\n");
        fields(head, asked, |name, value| {
            for part in [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                bytes.extend_from_slice(part);
            }
        });
        if has_body(head.status) {
            match head.framing {
                Framing::Eof => {}
                Framing::Length => {
                    bytes.extend_from_slice(b"content-length: ");
                    push_number(bytes, self.body.bytes.len() as u64);
                    bytes.extend_from_slice(b"\r\n");
                }
                Framing::Chunks | Framing::BrokenChunks => {
                    bytes.extend_from_slice(b"transfer-encoding: chunked\r\n");
                }
            }
        }
        if head.padding > 0 {
            bytes.extend_from_slice(b"x-padding: ");
            bytes.resize(bytes.len() + head.padding as usize, b'x');
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        let max_head = asked.config.max_head_bytes();
        if bytes.len() - start > max_head {
            let surely = (start + max_head + SLACK).min(bytes.len()) as u32;
            let start = start as u32;
            self.marks.push(Marked { known: start, there: start, mark: Mark::MayBreak });
            self.marks.push(Marked { known: surely, there: surely, mark: Mark::Broken });
        } else {
            self.mark(Mark::Head);
        }
    }

    /// The message ends here: by its framing, which says so at once, or with its connection
    fn ends_at(&mut self, asked: Asked<'_>, by_framing: bool) {
        let there = self.bytes.len() as u32;
        // A transport that reports facts tells of the end by itself.
        let known = there + u32::from(asked.facts || !by_framing);
        if by_framing {
            self.marks.push(Marked { known, there, mark: Mark::BodyEnd });
            self.body_end = Some(there);
        }
    }

    /// Puts the body into the framing of its message; returns whether that is unbroken
    fn frame(&mut self, framing: Framing, at: &mut Duration) -> bool {
        let chunked = matches!(framing, Framing::Chunks | Framing::BrokenChunks);
        let mut from = 0;
        let mut marks = 0;
        for piece in 0..self.pieces.len() {
            let (pause, upto) = self.pieces[piece];
            if chunked {
                push_hex(&mut self.bytes, upto - from);
                self.bytes.extend_from_slice(b"\r\n");
            }
            let shift = self.bytes.len() as u32 - from;
            self.bytes.extend_from_slice(&self.body.bytes[from as usize..upto as usize]);
            while let Some(marked) = self.body.marks.get(marks).filter(|marked| marked.known <= upto) {
                let Marked { known, there, mark } = *marked;
                self.marks.push(Marked { known: known + shift, there: there + shift, mark });
                marks += 1;
            }
            if chunked {
                self.bytes.extend_from_slice(b"\r\n");
            }
            *at += pause;
            self.sent(*at);
            if framing == Framing::BrokenChunks {
                self.mark(Mark::MayBreak);
                self.bytes.extend_from_slice(b"zz\r\n");
                self.mark(Mark::Broken);
                self.sent(*at);
                return false;
            }
            from = upto;
        }
        if chunked {
            self.bytes.extend_from_slice(b"0\r\n\r\n");
        }
        self.sent(*at);
        true
    }

    fn mark(&mut self, mark: Mark) {
        let at = self.bytes.len() as u32;
        self.marks.push(Marked { known: at, there: at, mark });
    }

    /// All bytes so far have come at `at`
    fn sent(&mut self, at: Duration) {
        let upto = self.bytes.len() as u32;
        match self.sends.last_mut() {
            Some((last, sent)) if *last == at => *sent = upto,
            _ => self.sends.push((at, upto)),
        }
    }
}

/// The head as a transport reports it that has parsed it
pub(crate) fn parsed_head(exchange: &Exchange, asked: Asked<'_>) -> ResponseHead {
    let mut headers = HeaderMap::new();
    fields(&exchange.head, asked, |name, value| {
        let value = HeaderValue::from_str(value).expect("values are printable");
        headers.append(HeaderName::from_static(name), value);
    });
    ResponseHead {
        version: Version::HTTP_2,
        status: StatusCode::from_u16(exchange.head.status).expect("plans have statuses from 100 to 999"),
        reason: Default::default(),
        headers,
    }
}

/// Whether a response of that status has a body (RFC 9112 6.3)
pub(crate) fn has_body(status: u16) -> bool {
    !matches!(status, 204 | 304)
}

/// Calls `field` with each header field that a head has in any transport
fn fields(head: &Head, asked: Asked<'_>, mut field: impl FnMut(&'static str, &str)) {
    let right = match (head.is_answer(asked.dialect.is_some()), asked.dialect, asked.shape) {
        (true, Some(Dialect::Ollama), Shape::Stream) => "application/x-ndjson",
        (true, Some(_), Shape::Stream) => "text/event-stream",
        _ => "application/json",
    };
    match head.content_type {
        ContentType::Right => field("content-type", right),
        ContentType::None => {}
        ContentType::Plain => field("content-type", "text/plain"),
        ContentType::WholeJson => field("content-type", "application/json"),
        ContentType::Html => field("content-type", "text/html"),
    }
    let text = |value: u32| value.to_string();
    match head.retry_after {
        RetryAfter::None => {}
        RetryAfter::Seconds(seconds) => field("retry-after", &text(seconds)),
        RetryAfter::Tenths(tenths) => field("retry-after", &format!("{}.{}", tenths / 10, tenths % 10)),
        RetryAfter::Millis(millis) => field("retry-after-ms", &text(millis)),
        RetryAfter::MillisAndSeconds(millis) => {
            field("retry-after", "60");
            field("x-ms-retry-after-ms", &text(millis));
        }
        RetryAfter::Date(seconds) => {
            field("retry-after", &http_date(asked.unix_seconds + u64::from(seconds)));
        }
        RetryAfter::Past => field("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"),
        RetryAfter::Garbage(garbage) => field("retry-after", garbage),
        RetryAfter::Huge => field("retry-after", "999999999999999999999999999999999999999999"),
    }
    match head.should_retry {
        None => {}
        Some(true) => field("x-should-retry", "true"),
        Some(false) => field("x-should-retry", "false"),
    }
}

/// A date as HTTP writes it (RFC 9110 5.6.7)
fn http_date(unix_seconds: u64) -> String {
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

fn push_number(bytes: &mut Vec<u8>, number: u64) {
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

fn push_hex(bytes: &mut Vec<u8>, number: u32) {
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
}
