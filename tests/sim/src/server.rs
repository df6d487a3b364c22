//! The scripted server, step by step, in virtual time.

use std::collections::VecDeque;

use steadfast::machine::Ended;
use steadfast::time::Instant;
use steadfast_scenario::{Read, Server, Step, Tally};

/// Bytes that may be under way in one direction before the sender has to wait
const WINDOW: usize = 256 * 1024;

/// One connection as its server sees it
pub(crate) struct Peer {
    tls: bool,
    receive_window: usize,
    send_window: usize,
    frames: Vec<Frame>,
    task: Task,
    /// Bytes from the client that the server has not read
    inbound: VecDeque<u8>,
    /// What of the current request has been read
    request: RequestReader,
    /// Bytes for the client that it has not read
    outbound: VecDeque<u8>,
    /// What comes after them
    end: Option<PeerEnd>,
    /// The TLS handshake is over; without TLS there is none
    open: bool,
    close_notify: bool,
    client_gone: bool,
    blocked_since: Option<Instant>,
    tally: Tally,
}

/// How the server's side of a connection ended
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerEnd {
    Fin(Ended),
    Reset,
}

/// A list of steps, and how often it is still to be done
struct Frame {
    steps: Vec<Step>,
    next: usize,
    more: Option<u32>,
}

enum Task {
    Ready,
    /// Reading, and how many bytes still at the most
    Reading(Read, usize),
    Sending(Vec<u8>, usize),
    Pausing(Instant),
    AwaitingClose,
    Holding,
    Over,
}

impl Peer {
    pub(crate) fn new(server: &Server, steps: &[Step]) -> Self {
        let window = |bytes: Option<u32>| bytes.map_or(WINDOW, |bytes| bytes as usize);
        Self {
            tls: server.tls,
            receive_window: window(server.receive_buffer),
            send_window: window(server.send_buffer),
            frames: vec![Frame { steps: steps.to_vec(), next: 0, more: Some(0) }],
            task: Task::Ready,
            inbound: VecDeque::new(),
            request: RequestReader::default(),
            outbound: VecDeque::new(),
            end: None,
            open: !server.tls,
            close_notify: false,
            client_gone: false,
            blocked_since: None,
            tally: Tally { connections: 1, ..Tally::default() },
        }
    }

    /// Whether the client's connection is set up
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// When the server goes on by itself
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        if let Task::Pausing(until) = self.task { Some(until) } else { None }
    }

    /// Room for bytes from the client
    pub(crate) fn room(&self) -> usize {
        self.receive_window.saturating_sub(self.inbound.len())
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.inbound.extend(bytes);
    }

    /// Takes up to `most` bytes for the client
    pub(crate) fn read(&mut self, most: usize) -> Vec<u8> {
        let count = self.outbound.len().min(most);
        self.outbound.drain(..count).collect()
    }

    /// How the server's side ended, once everything before that was read
    pub(crate) fn end(&self) -> Option<PeerEnd> {
        self.end.filter(|_| self.outbound.is_empty())
    }

    /// The client has closed the connection
    pub(crate) fn client_closed(&mut self, now: Instant) {
        self.client_gone = true;
        self.run(now);
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Does whatever can be done at `now`; returns whether anything was
    pub(crate) fn run(&mut self, now: Instant) -> bool {
        let mut acted = false;
        while self.step(now) {
            acted = true;
        }
        acted
    }

    fn step(&mut self, now: Instant) -> bool {
        match &mut self.task {
            Task::Over | Task::Holding => return false,
            Task::Ready => match self.next_step() {
                Some(step) => self.begin(step, now),
                None => self.task = Task::Over,
            },
            Task::Pausing(until) if *until <= now => self.task = Task::Ready,
            Task::Pausing(_) => return false,
            Task::Reading(read, most) => {
                let before = self.inbound.len();
                let (done, heads) = self.request.read(*read, most, &mut self.inbound);
                self.tally.received += (before - self.inbound.len()) as u64;
                self.tally.requests += heads;
                if done {
                    self.task = Task::Ready;
                } else if self.client_gone {
                    self.saw_close();
                } else {
                    return false;
                }
            }
            Task::Sending(bytes, sent) => {
                if self.client_gone {
                    self.saw_close();
                    return true;
                }
                let room = self.send_window.saturating_sub(self.outbound.len()).min(bytes.len() - *sent);
                self.outbound.extend(&bytes[*sent..*sent + room]);
                *sent += room;
                if *sent == bytes.len() {
                    self.task = Task::Ready;
                    if let Some(since) = self.blocked_since.take() {
                        self.tally.blocked += now - since;
                    }
                } else {
                    self.blocked_since.get_or_insert(now);
                    return room > 0;
                }
            }
            Task::AwaitingClose => {
                self.tally.received += self.inbound.len() as u64;
                self.inbound.clear();
                if !self.client_gone {
                    return false;
                }
                self.saw_close();
            }
        }
        true
    }

    fn begin(&mut self, step: Step, now: Instant) {
        if matches!(step, Step::Read(_) | Step::Send(_)) {
            self.open = true;
        }
        self.task = match step {
            Step::Read(read @ Read::Bytes(count)) => {
                Task::Reading(read, usize::try_from(count).unwrap_or(usize::MAX))
            }
            Step::Read(read) => Task::Reading(read, usize::MAX),
            Step::Send(bytes) => Task::Sending(bytes, 0),
            Step::Pause(pause) => Task::Pausing(now + pause),
            Step::Repeat { times, steps } => {
                self.frames.push(Frame { steps, next: 0, more: times.map(|times| times.saturating_sub(1)) });
                Task::Ready
            }
            Step::CloseNotify => {
                self.close_notify = true;
                self.end = Some(PeerEnd::Fin(Ended::Clean));
                Task::Ready
            }
            Step::Fin => {
                self.end = Some(self.fin());
                Task::Ready
            }
            Step::AwaitClose => Task::AwaitingClose,
            Step::Hold => Task::Holding,
            Step::Close => {
                // Closing with bytes unread is a reset, as the kernel has it.
                self.end = Some(if self.inbound.is_empty() { self.fin() } else { PeerEnd::Reset });
                Task::Over
            }
            Step::Reset => {
                self.end = Some(PeerEnd::Reset);
                Task::Over
            }
        };
    }

    fn fin(&self) -> PeerEnd {
        PeerEnd::Fin(if self.tls && !self.close_notify { Ended::WithoutCloseNotify } else { Ended::Clean })
    }

    fn saw_close(&mut self) {
        self.tally.closed_by_peer += 1;
        self.task = Task::Over;
    }

    fn next_step(&mut self) -> Option<Step> {
        loop {
            let frame = self.frames.last_mut()?;
            if let Some(step) = frame.steps.get(frame.next) {
                frame.next += 1;
                return Some(step.clone());
            }
            match &mut frame.more {
                Some(0) => {
                    self.frames.pop();
                }
                Some(more) => {
                    *more -= 1;
                    frame.next = 0;
                }
                None => frame.next = 0,
            }
        }
    }
}

/// Reads requests as far as a script asks
#[derive(Default)]
struct RequestReader {
    head: Vec<u8>,
    /// Bytes of the body still to come, once the head is complete
    body_left: Option<usize>,
}

impl RequestReader {
    /// Whether what was asked for has been read, and how many heads were completed by it
    fn read(&mut self, read: Read, most: &mut usize, inbound: &mut VecDeque<u8>) -> (bool, u32) {
        let mut heads = 0;
        while *most > 0 {
            match &mut self.body_left {
                Some(0) => {
                    *self = Self::default();
                    if matches!(read, Read::Request) {
                        return (true, heads);
                    }
                }
                Some(_) if matches!(read, Read::Head) => return (true, heads),
                Some(left) => {
                    let count = (*left).min(inbound.len()).min(*most);
                    inbound.drain(..count);
                    *most -= count;
                    *left -= count;
                    if *left > 0 && *most > 0 {
                        return (false, heads);
                    }
                }
                None => {
                    let Some(byte) = inbound.pop_front() else { return (false, heads) };
                    *most -= 1;
                    self.head.push(byte);
                    if self.head.ends_with(b"\r\n\r\n") {
                        heads += 1;
                        self.body_left = Some(content_length(&self.head));
                        if matches!(read, Read::Head) {
                            return (true, heads);
                        }
                    }
                }
            }
        }
        (true, heads)
    }
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.and_then(|length| length.trim().parse().ok()).unwrap_or(0)
}

/// All connections of one server together
pub(crate) fn add(total: &mut Tally, of_one: &Tally) {
    total.connections += of_one.connections;
    total.requests += of_one.requests;
    total.blocked += of_one.blocked;
    total.received += of_one.received;
    total.closed_by_peer += of_one.closed_by_peer;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn requests_are_read_as_far_as_asked() {
        let mut inbound: VecDeque<u8> =
            b"POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcGET".iter().copied().collect();
        let mut reader = RequestReader::default();
        let mut read = |read, mut most: usize| reader.read(read, &mut most, &mut inbound);
        assert_eq!(read(Read::Head, usize::MAX), (true, 1));
        assert_eq!(read(Read::Bytes(1), 1), (true, 0));
        assert_eq!(read(Read::Request, usize::MAX), (true, 0));
        assert_eq!(read(Read::Bytes(2), 2), (true, 0));
        assert_eq!(read(Read::Request, usize::MAX), (false, 0));
        assert!(inbound.is_empty());
    }

    #[test]
    fn repeats_nest_and_pauses_wake() {
        let server = Server {
            listen: steadfast_scenario::Listen::Accept,
            tls: false,
            receive_buffer: None,
            send_buffer: None,
        };
        let pause = Step::Pause(Duration::from_millis(5));
        let inner = Step::Repeat { times: Some(2), steps: vec![Step::Send(b"x".to_vec())] };
        let steps = [Step::Repeat { times: Some(3), steps: vec![inner, pause] }, Step::Close];
        let mut peer = Peer::new(&server, &steps);
        let mut now = Instant::ORIGIN;
        peer.run(now);
        for _ in 0..3 {
            assert_eq!(peer.read(100), b"xx");
            assert_eq!(peer.end(), None);
            now = peer.wakes_at().expect("a pause");
            peer.run(now);
        }
        assert_eq!(now, Instant::from_nanos(15_000_000));
        assert_eq!(peer.end(), Some(PeerEnd::Fin(Ended::Clean)));
    }
}
