//! Requests and answers as they go over the wire, and what is to become of them on the other side.

use steadfast::relay::Shape;

/// The names of the routes, their hosts and their dialects
pub(super) const ROUTES: [(&str, &str, Shape); 2] =
    [("openai", "a.example:8080", Shape::OpenAi), ("anthropic", "b.example:8080", Shape::Anthropic)];

/// The path that the relay serves itself
pub(super) const LOCAL: &str = "/healthz";

/// Where a request goes
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goes {
    /// To the provider of that route
    Up(usize),
    /// To the relay itself
    Local,
    /// Nowhere: no route has its path
    Nowhere,
    /// Nowhere: it is no HTTP from the byte of this place on
    Malformed,
}

/// How the end of a body is found
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none
    None,
    /// By its length
    Length,
    /// By its last chunk
    Chunked,
    /// By the end of the connection; of answers alone
    UntilClose,
}

/// A request of the app
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) goes: Goes,
    pub(super) is_head: bool,
    /// Whether it speaks HTTP/1.0
    pub(super) is_old: bool,
    pub(super) keeps_alive: bool,
    pub(super) expects: bool,
    pub(super) framing: Framing,
    pub(super) payload: Vec<u8>,
    /// How many bytes a chunk of it has
    pub(super) chunk: usize,
}

impl Request {
    /// What goes over the wire, and how much of it is head
    pub(super) fn wire(&self) -> (Vec<u8>, usize) {
        if self.goes == Goes::Malformed {
            let wire = b"POST /openai/v1 HTTP/1.1\r\nHost : a\r\n\r\n".to_vec();
            let length = wire.len();
            return (wire, length);
        }
        let target = match self.goes {
            Goes::Up(route) => format!("/{}/v1/x?q=1", ROUTES[route].0),
            Goes::Local => LOCAL.to_owned(),
            Goes::Nowhere | Goes::Malformed => "/nowhere".to_owned(),
        };
        let version = if self.is_old { "1.0" } else { "1.1" };
        let mut head =
            format!("{} {target} HTTP/{version}\r\nHost: relay\r\nX-Odd-CASE: a\r\n", self.method());
        match (self.is_old, self.keeps_alive) {
            (true, true) => head.push_str("Connection: keep-alive\r\n"),
            (false, false) => head.push_str("Connection: close\r\n"),
            (true, false) | (false, true) => {}
        }
        if self.expects {
            head.push_str("Expect: 100-continue\r\n");
        }
        head.push_str("Authorization: Bearer k\r\n");
        head.push_str(&self.framing_field());
        head.push_str("\r\n");
        let mut wire = head.into_bytes();
        let length = wire.len();
        wire.extend(framed(&self.payload, self.framing, self.chunk));
        (wire, length)
    }

    fn method(&self) -> &'static str {
        if self.is_head {
            "HEAD"
        } else if self.framing == Framing::None {
            "GET"
        } else {
            "POST"
        }
    }

    fn framing_field(&self) -> String {
        match self.framing {
            Framing::None | Framing::UntilClose => String::new(),
            Framing::Length => format!("Content-Length: {}\r\n", self.payload.len()),
            Framing::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
        }
    }

    /// The head that the provider is to get
    pub(super) fn head_for_provider(&self) -> Vec<u8> {
        let Goes::Up(route) = self.goes else { return Vec::new() };
        let host = ROUTES[route].1;
        let (method, framing) = (self.method(), self.framing_field());
        format!(
            "{method} /v1/x?q=1 HTTP/1.1\r\nHost: {host}\r\nX-Odd-CASE: a\r\nAuthorization: Bearer k\r\n\
             {framing}\r\n"
        )
        .into_bytes()
    }

    /// Whether what a provider got is the beginning of this request, and whether it is all of it
    ///
    /// Errors: what is wrong with it.
    pub(super) fn check_sent(&self, got: &[u8]) -> Result<bool, String> {
        let head = self.head_for_provider();
        if got.len() < head.len() {
            return if head.starts_with(got) { Ok(false) } else { Err(differs("head", got, &head)) };
        }
        let body = got.strip_prefix(&head[..]).ok_or_else(|| differs("head", got, &head))?;
        let (payload, is_whole) = match self.framing {
            Framing::Chunked => unchunk(body)?,
            Framing::None | Framing::Length | Framing::UntilClose => {
                (body.to_vec(), body.len() == self.payload.len())
            }
        };
        if !self.payload.starts_with(&payload) || (is_whole && payload.len() < self.payload.len()) {
            return Err(differs("body", &payload, &self.payload));
        }
        Ok(is_whole)
    }
}

/// An answer of a provider
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) has_interim: bool,
    pub(super) framing: Framing,
    pub(super) payload: Vec<u8>,
    pub(super) chunk: usize,
    /// Where in its chunk framing it is no HTTP any more: behind this many bytes of body
    pub(super) broken_at: Option<usize>,
}

const INTERIM: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";

impl Answer {
    /// What goes over the wire: the interim answer, the head, and the body
    pub(super) fn wire(&self, to_head: bool) -> (Vec<u8>, usize) {
        let mut wire = if self.has_interim { INTERIM.to_vec() } else { Vec::new() };
        let field = match self.framing {
            Framing::Length => format!("Content-Length: {}\r\n", self.payload.len()),
            Framing::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
            Framing::None | Framing::UntilClose => String::new(),
        };
        let status = self.status;
        let head = format!(
            "HTTP/1.1 {status} Why Not\r\nDate: now\r\nKeep-Alive: timeout=5\r\nX-oDD: b\r\n{field}\r\n"
        );
        wire.extend_from_slice(head.as_bytes());
        let length = wire.len();
        if !to_head {
            wire.extend(self.body());
        }
        (wire, length)
    }

    /// The same with no more of a body than that
    pub(super) fn shorten(&mut self, most: usize) {
        self.payload.truncate(most);
        self.broken_at = self.broken_at.map(|at| at.min(self.payload.len() / 2));
    }

    fn body(&self) -> Vec<u8> {
        let mut body = framed(&self.payload, self.framing, self.chunk);
        if let Some(at) = self.broken_at {
            body.truncate(at);
            body.extend_from_slice(b"\r\nzz\r\n");
        }
        body
    }

    /// Whether the status says that the provider did nothing, being overloaded
    pub(super) fn is_overload(&self, route: usize) -> bool {
        self.status == 503 || (self.status == 529 && ROUTES[route].2 == Shape::Anthropic)
    }

    /// How the app finds the end, which may be another way than ours
    fn framing_for_app(&self, is_old: bool, to_head: bool) -> Framing {
        match self.framing {
            _ if to_head || self.status == 204 => Framing::None,
            Framing::Chunked | Framing::UntilClose if is_old => Framing::UntilClose,
            Framing::Chunked | Framing::UntilClose => Framing::Chunked,
            Framing::Length | Framing::None => Framing::Length,
        }
    }

    /// Whether what the app got is the beginning of this answer
    ///
    /// `fed` bytes of it came from the provider, and no answer of the relay's own stands in its place.
    ///
    /// Errors: what is wrong with it.
    pub(super) fn check_passed(&self, got: &[u8], fed: usize, request: &Request) -> Result<Got, String> {
        let (is_old, to_head) = (request.is_old, request.is_head);
        let framing = self.framing_for_app(is_old, to_head);
        let own = match self.framing {
            Framing::Length if self.status != 204 => format!("Content-Length: {}\r\n", self.payload.len()),
            Framing::Length | Framing::Chunked | Framing::None | Framing::UntilClose => String::new(),
        };
        let chunked = if framing == Framing::Chunked { "Transfer-Encoding: chunked\r\n" } else { "" };
        let status = self.status;
        let head = format!("HTTP/1.1 {status} Why Not\r\nDate: now\r\nX-oDD: b\r\n{own}{chunked}");
        let heads = ["", "Connection: close\r\n", "Connection: keep-alive\r\n"]
            .map(|last| format!("{head}{last}\r\n").into_bytes());
        let Some(head) = heads.iter().find(|head| got.starts_with(head)) else {
            let is_part = heads.iter().any(|head| head.starts_with(got));
            let part = Got { says_close: false, is_whole: false, is_all_fed: false };
            return if is_part { Ok(part) } else { Err(differs("head", got, &heads[0])) };
        };
        let says_close = head == &heads[1];
        let (wire, head_length) = self.wire(to_head);
        let fed_body = &wire[head_length.min(wire.len())..fed.clamp(head_length, wire.len())];
        let body = &got[head.len()..];
        let is_verbatim = framing == self.framing || framing == Framing::None;
        let (is_right, is_all_fed, is_whole) = if is_verbatim {
            let whole = &wire[head_length..];
            let is_whole = body.len() == whole.len() && self.broken_at.is_none();
            // How much of a line that is none goes by is the decoder's choice.
            let is_all_fed = match self.broken_at {
                None => body.len() == fed_body.len(),
                Some(_) => unchunk_valid(body) == unchunk_valid(fed_body),
            };
            (fed_body.starts_with(body), is_all_fed, is_whole)
        } else {
            let fed_payload = match self.framing {
                Framing::Chunked => unchunk_valid(fed_body),
                Framing::None | Framing::Length | Framing::UntilClose => fed_body.to_vec(),
            };
            let (payload, has_ended) = match framing {
                Framing::Chunked => unchunk(body)?,
                Framing::None | Framing::Length | Framing::UntilClose => (body.to_vec(), true),
            };
            let is_right = fed_payload.starts_with(&payload);
            (is_right, payload.len() == fed_payload.len(), has_ended && payload == self.payload)
        };
        if !is_right {
            return Err(differs("body", body, fed_body));
        }
        Ok(Got { says_close, is_whole, is_all_fed })
    }
}

/// How much the app got of an answer
#[derive(Clone, Copy, Debug)]
pub(super) struct Got {
    pub(super) says_close: bool,
    pub(super) is_whole: bool,
    /// All that the provider sent of it, and the relay read
    pub(super) is_all_fed: bool,
}

fn framed(payload: &[u8], framing: Framing, chunk: usize) -> Vec<u8> {
    if framing != Framing::Chunked {
        return payload.to_vec();
    }
    let mut wire = Vec::new();
    for piece in payload.chunks(chunk.max(1)) {
        wire.extend_from_slice(format!("{:X};x=1\r\n", piece.len()).as_bytes());
        wire.extend_from_slice(piece);
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(b"0\r\n\r\n");
    wire
}

/// The payload of a chunked body, or of the beginning of one, and whether it is whole
///
/// Errors: what is wrong with it.
fn unchunk(body: &[u8]) -> Result<(Vec<u8>, bool), String> {
    let (mut payload, mut rest) = (Vec::new(), body);
    loop {
        let Some(line) = rest.windows(2).position(|pair| pair == b"\r\n") else {
            return Ok((payload, false));
        };
        let size = String::from_utf8_lossy(&rest[..line]);
        let size = if size.contains('\r') { "" } else { size.split(';').next().unwrap_or_default() };
        let size = usize::from_str_radix(size, 16).map_err(|_| format!("no size of a chunk: {size:?}"))?;
        rest = &rest[line + 2..];
        if size == 0 {
            return match rest {
                b"\r\n" => Ok((payload, true)),
                _ if b"\r\n".starts_with(rest) => Ok((payload, false)),
                _ => Err(format!("{} bytes behind the last chunk", rest.len())),
            };
        }
        payload.extend_from_slice(&rest[..size.min(rest.len())]);
        if rest.len() < size + 2 {
            return Ok((payload, false));
        }
        if &rest[size..size + 2] != b"\r\n" {
            return Err("no line end behind a chunk".to_owned());
        }
        rest = &rest[size + 2..];
    }
}

/// The same, up to where it is no chunked body any more
fn unchunk_valid(body: &[u8]) -> Vec<u8> {
    let most = (0..=body.len()).rev().find_map(|length| unchunk(&body[..length]).ok());
    most.map(|(payload, _)| payload).unwrap_or_default()
}

fn differs(what: &str, got: &[u8], expected: &[u8]) -> String {
    let show = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
    format!("the {what} differs: {:?} in place of {:?}", show(got), show(expected))
}
