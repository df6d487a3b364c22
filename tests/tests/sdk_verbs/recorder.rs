//! A server that takes any request, remembers it, and answers with something harmless.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// No read of it waits longer
const CAP: Duration = Duration::from_secs(60);

/// The longest body it takes, in bytes
const MAX_BODY_BYTES: usize = 1 << 20;

/// A request as it came
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// What was announced last before it came, as the query of `/__verb`
    pub(crate) announced: String,
    pub(crate) method: String,
    /// Path and query
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Recorded {
    /// The value of a header field, whatever the case of its name
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The server; it goes with the process
pub(crate) struct Recorder {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    announced: String,
    recorded: Vec<Recorded>,
}

impl Recorder {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(stream, address, &shared));
            }
        });
        Self { address, state }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What came since this was asked last
    pub(crate) fn take(&self) -> Vec<Recorded> {
        std::mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).recorded)
    }
}

/// Answers the requests of a connection until it ends
fn serve(stream: TcpStream, address: SocketAddr, state: &Mutex<State>) {
    stream.set_read_timeout(Some(CAP)).expect("a bound");
    let mut reader = BufReader::new(stream);
    while let Ok(Some(mut request)) = read(&mut reader) {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(query) = request.target.strip_prefix("/__verb?") {
            state.announced = query.to_owned();
        } else {
            request.announced = state.announced.clone();
            state.recorded.push(request);
        }
        drop(state);
        let body = format!(
            r#"{{"id":"x","object":"list","data":[],"name":"files/x","results_url":"http://{address}/v1/messages/batches/msgbatch_1/results"}}"#
        );
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
        if write!(reader.get_mut(), "{head}: {}\r\n\r\n{body}", body.len()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Recorded>> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let Some(line) = read_line(reader)? else { return Ok(None) };
    let mut words = line.split(' ').map(str::to_owned);
    let (method, target) = (words.next().ok_or_else(invalid)?, words.next().ok_or_else(invalid)?);
    let mut headers = Vec::new();
    while let Some(line) = read_line(reader)?.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or_else(invalid)?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut request = Recorded { announced: String::new(), method, target, headers, body: Vec::new() };
    if request.header("transfer-encoding").is_some() {
        while let Some(size) = read_line(reader)? {
            let size = usize::from_str_radix(&size, 16).map_err(|_| invalid())?;
            read_body(reader, size, &mut request.body)?;
            read_line(reader)?;
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = request.header("content-length") {
        let length = length.parse().map_err(|_| invalid())?;
        read_body(reader, length, &mut request.body)?;
    }
    Ok(Some(request))
}

fn read_body(reader: &mut impl Read, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
    let before = body.len();
    if before + length > MAX_BODY_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    body.resize(before + length, 0);
    reader.read_exact(&mut body[before..])
}

fn read_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = reader.take(64 << 10).read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
}
