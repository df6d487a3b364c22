//! The server: listening, accepting, shutting down.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use steadfast_scenario::{Listen, Script};

use crate::identity::Identity;
use crate::play::{finish, play};
use crate::record::{Recorded, Sighting};
use crate::state::{State, Watcher};
use crate::wire::{Broken, Wire};

/// So many connections wait to be accepted
const QUEUE: i32 = 1024;
/// A connection to a full queue that is not open by then is taken not to open
const UNANSWERED: Duration = Duration::from_millis(150);
/// A queue of length 0 that took so many would never be full
const MOST_FILLERS: usize = 64;

/// A running server, on loopback
///
/// Dropping it is [`Mock::shutdown`].
pub struct Mock {
    address: SocketAddr,
    tls: bool,
    ca_pem: Option<String>,
    state: Arc<State>,
    accepting: Option<JoinHandle<()>>,
    /// What keeps the port closed, or its queue full
    _held: Vec<Socket>,
    _fillers: Vec<TcpStream>,
}

impl Mock {
    /// Starts to play `script` on `port` of 127.0.0.1, or on one that is free
    ///
    /// Errors: the port is taken, or the system refuses a socket, a thread or a full queue.
    pub fn start(script: &Script, port: Option<u16>) -> io::Result<Self> {
        Self::serve(script, port, None)
    }

    /// As [`Mock::start`], and tells `watcher` what it sees as it happens
    ///
    /// The watcher is called on the thread of the connection, which waits for it. What it was told
    /// of headers and bodies is not kept in the record, so that a server may run for long.
    pub fn watch(
        script: &Script,
        port: Option<u16>,
        watcher: impl Fn(Sighting) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::serve(script, port, Some(Box::new(watcher)))
    }

    fn serve(script: &Script, port: Option<u16>, watcher: Option<Watcher>) -> io::Result<Self> {
        let server = script.server;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        if let Some(size) = server.receive_buffer {
            // Before listening, so that accepted sockets inherit it and announce a window to match.
            socket.set_recv_buffer_size(size as usize)?;
        }
        if let Some(size) = server.send_buffer {
            socket.set_send_buffer_size(size as usize)?;
        }
        if port.is_some() && server.listen == Listen::Accept {
            // A port that was named is meant to be used again and again.
            socket.set_reuse_address(true)?;
        }
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).into())?;
        let address = socket
            .local_addr()?
            .as_socket()
            .ok_or_else(|| io::Error::other("a TCP socket without an IP address"))?;
        let identity = server.tls.then(Identity::new).transpose()?;
        let mut mock = Self {
            address,
            tls: server.tls,
            ca_pem: identity.as_ref().map(|identity| identity.ca_pem.clone()),
            state: Arc::new(State::new(watcher)),
            accepting: None,
            _held: Vec::new(),
            _fillers: Vec::new(),
        };
        match server.listen {
            // Bound and never listening: whoever connects is refused, and nobody else gets the port.
            Listen::Refuse => mock._held.push(socket),
            Listen::FullBacklog => {
                socket.listen(0)?;
                mock._fillers = fill(address)?;
                mock._held.push(socket);
            }
            Listen::Accept => {
                socket.listen(QUEUE)?;
                let acceptor = Acceptor {
                    listener: socket.into(),
                    script: Arc::new(script.clone()),
                    identity: identity.map(Arc::new),
                    state: Arc::clone(&mock.state),
                    name: format!("mock-{}", address.port()),
                };
                let thread = std::thread::Builder::new().name(acceptor.name.clone());
                mock.accepting = Some(thread.spawn(move || acceptor.run())?);
            }
        }
        Ok(mock)
    }

    /// Where it listens
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Its address as a client is configured with it: scheme, host and port
    pub fn base_url(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.address)
    }

    /// The certificate, in PEM, that a client must trust; none without TLS
    ///
    /// It vouches for `localhost`, `127.0.0.1` and `::1`, and is made anew for each server.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// What it has seen so far
    pub fn recorded(&self) -> Recorded {
        self.state.recorded()
    }

    /// Waits until what it has seen is as asked; none if it is not within `cap`
    pub fn wait_for(&self, cap: Duration, holds: impl FnMut(&Recorded) -> bool) -> Option<Recorded> {
        self.state.wait_for(cap, holds)
    }

    /// Closes every connection, ends every thread, and returns what was seen
    pub fn shutdown(mut self) -> Recorded {
        self.stop();
        self.recorded()
    }

    fn stop(&mut self) {
        self.state.stop();
        if let Some(accepting) = self.accepting.take() {
            // Nothing but a connection ends an accept on every platform.
            let _woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
            // A panic there was printed when it happened.
            let _ = accepting.join();
        }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Fills the queue of a listener that never accepts, until a connection goes unanswered
fn fill(address: SocketAddr) -> io::Result<Vec<TcpStream>> {
    let mut fillers = Vec::new();
    while fillers.len() < MOST_FILLERS {
        match TcpStream::connect_timeout(&address, UNANSWERED) {
            Ok(filler) => fillers.push(filler),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(fillers),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("this system accepts connections beyond a listener's queue"))
}

/// The thread that accepts, with what the threads of the connections need
struct Acceptor {
    listener: TcpListener,
    script: Arc<Script>,
    identity: Option<Arc<Identity>>,
    state: Arc<State>,
    name: String,
}

impl Acceptor {
    fn run(self) {
        let mut serving: Vec<JoinHandle<()>> = Vec::new();
        while !self.state.stopping() {
            match self.listener.accept() {
                Ok((socket, _)) => serving.extend(self.serve(socket)),
                // A peer that was gone before it was accepted, or no more descriptors for now.
                Err(_) => {
                    self.state.pause(Some(Duration::from_millis(10)));
                }
            }
            serving.retain(|thread| !thread.is_finished());
        }
        drop(self);
        for thread in serving {
            // A panic there was printed when it happened.
            let _ = thread.join();
        }
    }

    /// Starts the thread of one connection; none where the server is stopping or cannot
    fn serve(&self, socket: TcpStream) -> Option<JoinHandle<()>> {
        let socket = Arc::new(socket);
        let connection = self.state.opened(&socket)?;
        let (script, identity, state) =
            (Arc::clone(&self.script), self.identity.clone(), Arc::clone(&self.state));
        let run = move || {
            // Pieces must arrive as they were sent. A socket that refuses this is gone, as the first step will find.
            let _ = socket.set_nodelay(true);
            let tls = identity.as_deref().map(|identity| &identity.config);
            let steps = script.connection(connection).map_or(&[][..], |connection| &connection.steps);
            match Wire::new(connection, socket, tls, Arc::clone(&state)) {
                Ok(wire) => play(wire, connection, steps, &state),
                Err(broken) => {
                    state.release(connection);
                    finish(connection, Err(broken), &state);
                }
            }
        };
        let thread = std::thread::Builder::new().name(self.name.clone()).spawn(run);
        match thread {
            Ok(thread) => Some(thread),
            Err(error) => {
                self.state.release(connection);
                finish(connection, Err(Broken::Failed(format!("no thread: {error}"))), &self.state);
                None
            }
        }
    }
}
