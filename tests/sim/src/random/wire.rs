//! What a server sends, byte by byte, and what each of these bytes makes known.

use std::fmt::Write as _;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode, Version};
use steadfast::call::Shape;
use steadfast::config::RequestConfig;
use steadfast::dialect::Dialect;
use steadfast::http1::ResponseHead;

use super::coding::{gzip, http_date, push_hex, push_number};
use super::plan::{ContentType, Cut, End, Exchange, Framing, Head, Piece, Problem, RetryAfter};
use super::speech::{self, MAX_FLOOD, SLACK, Said};
use super::spoken::{Saying, Speech, What};

/// Bytes after the end of a response, which begin none
pub(crate) const SURPLUS: &[u8] = b"surplus\r\n";

/// The most bytes that come one by one: more would only take long
const MAX_TRICKLED: u32 = 400;

/// What a client knows once it has read so far
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// An interim head
    Interim,
    /// The final head
    Head,
    /// A piece of the answer
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
    /// The message begins once more, after words of it
    SecondMessage,
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
    /// Pieces of the answer that are said by then
    pub(crate) said: u32,
    pub(crate) mark: Mark,
}

/// The body of a response under construction
#[derive(Debug, Default)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    marks: Vec<Marked>,
    speech: Speech,
    /// Tokens so far
    tokens: u32,
    /// Which attempt of the run this is, for the tokens
    instance: u32,
    /// Events are the elements of a JSON array
    pub(crate) in_array: bool,
    /// Events so far
    events: u32,
    /// Where the present event begins
    event_start: u32,
    /// Bytes of the answer so far, but for what the provider says about it
    pub(crate) weight: usize,
    /// The most that may be of it; none where no stream goes so far
    max_weight: Option<usize>,
}

/// More than a provider says about an answer, and a second choice takes, in bytes
const WORDS: usize = 400;

impl Body {
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn fill(&mut self, bytes: usize) {
        self.bytes.resize(self.bytes.len() + bytes, b'x');
    }

    /// Says a piece of the answer, in words that JSON writes as they are
    pub(crate) fn say(&mut self, choice: u8, what: What, words: &str) {
        self.push(words);
        self.mean(choice, what, words);
    }

    /// The same, where it is written otherwise
    pub(crate) fn mean(&mut self, choice: u8, what: What, words: &str) {
        self.speech.words.push_str(words);
        self.meant(choice, what, words.len());
    }

    /// The last `bytes` of all words are that
    fn meant(&mut self, choice: u8, what: What, bytes: usize) {
        self.weight += if what == What::Finish { 0 } else { bytes };
        self.speech.sayings.push(Saying { choice, what, upto: self.speech.words.len() as u32 });
    }

    /// Says many bytes
    pub(crate) fn say_long(&mut self, choice: u8, what: What, bytes: usize) {
        self.fill(bytes);
        let words = &mut self.speech.words;
        words.extend(std::iter::repeat_n('x', bytes));
        self.meant(choice, what, bytes);
    }

    /// Says words that nothing else in the run says: `before`, a number, `after`
    pub(crate) fn say_new(&mut self, choice: u8, what: What, before: &str, after: &str) {
        let from = self.speech.words.len();
        // Writing to a string cannot fail.
        _ = write!(self.speech.words, "{before}{}.{}{after}", self.instance, self.tokens);
        self.tokens += 1;
        self.bytes.extend_from_slice(&self.speech.words.as_bytes()[from..]);
        self.meant(choice, what, self.speech.words.len() - from);
    }

    /// Says a text of the first choice that nothing else in the run has
    pub(crate) fn token(&mut self) {
        self.say_new(0, What::Text, "<", ">");
    }

    /// Adds an id that only this attempt has
    pub(crate) fn id(&mut self) {
        self.push("i");
        push_number(&mut self.bytes, self.instance.into());
    }

    /// Adds a number in decimal digits
    pub(crate) fn number(&mut self, number: u8) {
        push_number(&mut self.bytes, number.into());
    }

    fn said(&self) -> u32 {
        self.speech.sayings.len() as u32
    }

    pub(crate) fn mark(&mut self, mark: Mark) {
        let at = self.bytes.len() as u32;
        self.marks.push(Marked { known: at, there: at, said: self.said(), mark });
    }

    /// Begins the event whose data follows
    pub(crate) fn begin(&mut self, dialect: Dialect) {
        self.events += 1;
        self.event_start = self.bytes.len() as u32;
        if self.in_array {
            self.push(if self.events == 1 { "[" } else { ",\r\n" });
        } else if dialect != Dialect::Ollama {
            self.push("data: ");
        }
    }

    /// Ends the event, and says what it makes known
    pub(crate) fn end(&mut self, dialect: Dialect, mark: Mark) {
        let there = self.bytes.len() as u32;
        if !self.in_array {
            self.push(if dialect == Dialect::Ollama { "\n" } else { "\n\n" });
        }
        let known = self.bytes.len() as u32;
        let most = self.max_weight.unwrap_or(usize::MAX);
        if self.weight.saturating_add(WORDS) > most {
            let start = self.event_start;
            self.marks.push(Marked { known: start, there: start, said: 0, mark: Mark::MayBreak });
        }
        let mark = if self.weight > most { Mark::Broken } else { mark };
        self.marks.push(Marked { known, there, said: self.said(), mark });
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
    /// What is said
    pub(crate) speech: Speech,
    /// Where the message ends by its framing, and where its body begins
    pub(crate) body_end: Option<u32>,
    pub(crate) body_start: u32,
    /// The body was not cut
    pub(crate) is_whole: bool,
    body: Body,
    pieces: Vec<(Duration, u32)>,
    /// The body in its content coding; empty where it has none
    coded: Vec<u8>,
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

impl Asked<'_> {
    /// Whether an answer of that head is a JSON array of events
    pub(crate) fn is_array(&self, head: &Head) -> bool {
        head.content_type == ContentType::JsonArray
            && (self.dialect, self.shape) == (Some(Dialect::Gemini), Shape::Stream)
            && head.is_answer(true)
    }
}

impl Wire {
    /// Whether the body comes in a content coding
    pub(crate) fn is_coded(&self) -> bool {
        !self.coded.is_empty()
    }

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
        self.speech.clear();
        self.body.bytes.clear();
        self.body.marks.clear();
        self.body.speech.clear();
        self.body.tokens = 0;
        self.body.in_array = false;
        self.body.events = 0;
        self.body.weight = 0;
        self.body.max_weight = None;
        self.pieces.clear();
        self.coded.clear();
        self.body_end = None;
        self.body_start = 0;
        self.is_whole = true;
    }

    /// Plays `exchange` to whoever asked
    pub(crate) fn render(&mut self, exchange: &Exchange, asked: Asked<'_>) {
        self.clear();
        self.body.instance = asked.instance;
        let framing = if asked.facts { Framing::Length } else { exchange.head.framing };
        self.render_body(exchange, asked);
        if exchange.head.gzip && framing != Framing::Eof && has_body(exchange.head.status) {
            gzip(&self.body.bytes, &mut self.body.marks, &mut self.pieces, &mut self.coded);
        }
        std::mem::swap(&mut self.speech, &mut self.body.speech);
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
        if let Some(every) = exchange.trickle {
            self.trickle(every);
        }
        let last = self.sends.last().map_or(exchange.delay, |(at, _)| *at);
        self.end = (last + exchange.end.0, exchange.end.1);
    }

    /// The first bytes come one by one
    fn trickle(&mut self, every: Duration) {
        let mut late = Duration::ZERO;
        let mut single = Vec::new();
        let mut from = 0;
        for (at, upto) in self.sends.drain(..) {
            if from == upto {
                single.push((at + late, upto));
            }
            while from < upto.min(MAX_TRICKLED) {
                from += 1;
                single.push((at + late, from));
                late += every;
            }
            if from < upto {
                from = upto;
                single.push((at + late, from));
            }
        }
        self.sends = single;
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
            body.in_array = asked.is_array(head);
            body.max_weight = (max_body <= MAX_FLOOD).then_some(max_body);
            let mut said = Said::default();
            for (pause, piece) in &exchange.pieces {
                let before = body.bytes.len();
                speech::say(body, &mut said, dialect, *piece, asked.config);
                if body.bytes.len() > before {
                    pieces.push((*pause, body.bytes.len() as u32));
                }
            }
            if body.in_array {
                body.push(if body.events == 0 { "[]" } else { "]" });
                pieces.push((Duration::ZERO, body.bytes.len() as u32));
            }
            return;
        } else {
            let (before, after) = asked.dialect.map_or(("", ""), speech::whole);
            let is_event = asked.shape == Shape::Stream
                && matches!(asked.dialect, Some(Dialect::Gemini | Dialect::Ollama));
            let most = if is_event { asked.config.max_event_bytes() } else { max_body };
            let floods = floods && most <= MAX_FLOOD;
            // Nothing is held of a raw body, so there is no cap to break.
            let breaks = floods && asked.shape != Shape::Raw;
            body.push(before);
            if breaks {
                // Before the text: a document says nothing until it is whole.
                body.mark(Mark::MayBreak);
            }
            body.token();
            if floods {
                body.fill(most + SLACK);
            }
            if breaks {
                body.mark(Mark::Broken);
            }
            body.push(after);
            if let Some(dialect) = asked.dialect {
                body.mean(0, What::Finish, speech::finish_word(dialect, false));
            }
        }
        // For two of them a document is a stream of one event; for the others it is the answer once it is
        // whole, whatever the message still owes.
        if asked.shape == Shape::Stream && head.is_answer(asked.dialect.is_some()) {
            match asked.dialect {
                Some(Dialect::Gemini) => {
                    body.mark(Mark::Delta);
                    body.mark(Mark::Marker(false));
                }
                Some(dialect @ Dialect::Ollama) => {
                    body.end(dialect, Mark::Delta);
                    let there = body.bytes.len() as u32 - 1;
                    let said = body.said();
                    body.marks.push(Marked { known: there + 1, there, said, mark: Mark::Sentinel });
                }
                Some(_) => {
                    body.mark(Mark::Delta);
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
        let is_coded = self.is_coded();
        let length = if is_coded { self.coded.len() } else { self.body.bytes.len() };
        let bytes = &mut self.bytes;
        bytes.extend_from_slice(b"HTTP/1.1 ");
        push_number(bytes, u64::from(head.status));
        bytes.extend_from_slice(b" So\r\n");
        fields(head, asked, is_coded, |name, value| {
            for part in [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                bytes.extend_from_slice(part);
            }
        });
        if has_body(head.status) {
            match head.framing {
                Framing::Eof => {}
                Framing::Length => {
                    bytes.extend_from_slice(b"content-length: ");
                    push_number(bytes, length as u64);
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
            self.marks.push(Marked { known: start, there: start, said: 0, mark: Mark::MayBreak });
            self.marks.push(Marked { known: surely, there: surely, said: 0, mark: Mark::Broken });
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
            self.marks.push(Marked { known, there, said: 0, mark: Mark::BodyEnd });
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
            let body = if self.coded.is_empty() { &self.body.bytes } else { &self.coded };
            self.bytes.extend_from_slice(&body[from as usize..upto as usize]);
            while let Some(marked) = self.body.marks.get(marks).filter(|marked| marked.known <= upto) {
                let Marked { known, there, .. } = *marked;
                self.marks.push(Marked { known: known + shift, there: there + shift, ..*marked });
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
        self.marks.push(Marked { known: at, there: at, said: 0, mark });
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
pub(crate) fn parsed_head(exchange: &Exchange, asked: Asked<'_>, is_coded: bool) -> ResponseHead {
    let mut headers = HeaderMap::new();
    fields(&exchange.head, asked, is_coded, |name, value| {
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
fn fields(head: &Head, asked: Asked<'_>, is_coded: bool, mut field: impl FnMut(&'static str, &str)) {
    let right = match (head.is_answer(asked.dialect.is_some()), asked.dialect, asked.shape) {
        _ if asked.is_array(head) => "application/json",
        (true, Some(Dialect::Ollama), Shape::Stream) => "application/x-ndjson",
        (true, Some(_), Shape::Stream) => "text/event-stream",
        _ => "application/json",
    };
    match head.content_type {
        ContentType::Right | ContentType::JsonArray => field("content-type", right),
        ContentType::None => {}
        ContentType::Plain => field("content-type", "text/plain"),
        ContentType::WholeJson => field("content-type", "application/json"),
        ContentType::Html => field("content-type", "text/html"),
    }
    if is_coded {
        field("content-encoding", "gzip");
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
