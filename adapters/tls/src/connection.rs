//! One TLS connection, of either side, over memory.

use std::fmt;
use std::io::{self, Read, Write};

use bytes::{Buf, BufMut, BytesMut};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, IoState, ServerConnection};
use steadfast::machine::{Ended, Stage};

use crate::config::TlsConfig;
use crate::error::{TlsError, TlsFault};
use crate::server::TlsServerConfig;

/// How many cipher bytes may wait to be sent before [`TlsConnection::write`] takes no more
///
/// The records around the last plain bytes taken may go past it, by some 30 bytes for each 16 KiB.
pub const OUTGOING_LIMIT: usize = 64 * 1024;

/// One TLS connection: what comes from the socket goes in here, what goes to the socket comes out
///
/// All memory is bounded, whatever the peer sends. Cipher bytes from the peer: one incomplete
/// record of up to 18 KiB, or 64 KiB of one handshake message. Plain bytes from the peer: what 4 KiB
/// more of cipher bytes complete, so one record of up to 16 KiB and some small ones. Cipher bytes for
/// the peer: [`OUTGOING_LIMIT`]; the peer cannot make this grow, since the TLS library limits the
/// messages that call for an answer. While nothing is under way, a connection holds some 8 KiB, of
/// which 4 KiB are the library's read buffer.
pub struct TlsConnection {
    connection: Connection,
    host: Box<str>,
    /// Cipher bytes not yet sent; has no allocation while it is empty
    outgoing: BytesMut,
    /// How the peer's side ended; comes to light once the plain bytes before it were read
    end: Option<Result<Ended, TlsError>>,
    closed: bool,
}

/// What [`TlsConnection::read`] found
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainRead {
    /// So many plain bytes were read
    Bytes(usize),
    /// Nothing is there; feed more cipher bytes
    Pending,
    /// The peer will send no more, and all it sent was read
    Ended(Ended),
}

impl TlsConnection {
    /// A connection to `host`, a DNS name or an IP address, whose handshake waits in
    /// [`TlsConnection::outgoing`]; we are its client
    ///
    /// An IPv6 address may stand in brackets, as in a URL.
    ///
    /// Errors: [`TlsFault::InvalidHost`].
    pub fn client(config: &TlsConfig, host: &str) -> Result<Self, TlsError> {
        let failed = |fault| TlsError { host: host.to_owned(), stage: Stage::Tls, fault };
        let bare = host.strip_prefix('[').and_then(|bare| bare.strip_suffix(']')).unwrap_or(host);
        let name = ServerName::try_from(bare.to_owned()).map_err(|_| failed(TlsFault::InvalidHost))?;
        let mut connection = ClientConnection::new(config.client(), name)
            .map_err(|error| failed(TlsFault::new(&error, Stage::Tls)))?;
        connection.set_buffer_limit(Some(OUTGOING_LIMIT));
        Ok(Self::over(connection.into(), host))
    }

    /// A connection of a client, whose handshake has yet to come from it; we are its server
    ///
    /// Errors: the TLS library refuses its configuration. They are of the host `the client`.
    pub fn server(config: &TlsServerConfig) -> Result<Self, TlsError> {
        const HOST: &str = "the client";
        let mut connection = ServerConnection::new(config.server()).map_err(|error| TlsError {
            host: HOST.to_owned(),
            stage: Stage::Tls,
            fault: TlsFault::new(&error, Stage::Tls),
        })?;
        connection.set_buffer_limit(Some(OUTGOING_LIMIT));
        Ok(Self::over(connection.into(), HOST))
    }

    fn over(connection: Connection, host: &str) -> Self {
        let mut tls =
            Self { connection, host: host.into(), outgoing: BytesMut::new(), end: None, closed: false };
        tls.collect_outgoing();
        tls
    }

    /// Whether we are the server
    pub fn is_server(&self) -> bool {
        matches!(self.connection, Connection::Server(_))
    }

    /// Whether the peer has ended its side, as far as the bytes taken tell; what it sent before may
    /// still be unread
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether decrypted bytes wait to be read
    ///
    /// Asked of the library each time: a record that fails may stand behind others that did not.
    pub fn has_plain(&mut self) -> bool {
        self.connection.reader().into_first_chunk().is_ok_and(|chunk| !chunk.is_empty())
    }

    /// Whether plain bytes cannot be written yet
    ///
    /// The last bytes of the handshake may still be in [`TlsConnection::outgoing`] when it turns
    /// false. A server that refuses our own certificate may say so only later, to a read.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Takes cipher bytes from the peer and returns how many
    ///
    /// It stops as soon as plain bytes are there, and takes nothing while they are: read them,
    /// then feed the rest again. That is the back-pressure. What follows the peer's end is taken
    /// and dropped (RFC 8446, section 6.1).
    ///
    /// Errors: the connection has failed, and every plain byte before that was read. The alert
    /// that tells the peer is then in [`TlsConnection::outgoing`].
    pub fn received(&mut self, cipher: &[u8]) -> Result<usize, TlsError> {
        let mut rest = cipher;
        while self.end.is_none() && !self.has_plain() && !rest.is_empty() {
            let stage = self.stage();
            match self.advance(&mut rest) {
                Ok(state) if state.peer_has_closed() => self.end = Some(Ok(Ended::Clean)),
                Ok(_) => {}
                Err(error) => self.end = Some(Err(self.failed(TlsFault::new(&error, stage), stage))),
            }
        }
        self.collect_outgoing();
        self.failure()?;
        Ok(if self.end.is_some() { cipher.len() } else { cipher.len() - rest.len() })
    }

    /// Notes that the peer's side of the TCP connection has ended
    ///
    /// Errors: as for [`TlsConnection::received`], and [`TlsFault::ClosedInHandshake`].
    pub fn eof(&mut self) -> Result<(), TlsError> {
        if self.end.is_none() {
            self.end = Some(if self.is_handshaking() {
                Err(self.failed(TlsFault::ClosedInHandshake, Stage::Tls))
            } else {
                Ok(Ended::WithoutCloseNotify)
            });
        }
        self.failure()
    }

    /// Reads plain bytes from the peer
    ///
    /// An end without `close_notify` may be an attacker's cut: the data is whole only if its own
    /// framing says so.
    ///
    /// Errors: the connection has failed, and every plain byte before that was read.
    pub fn read(&mut self, plain: &mut [u8]) -> Result<PlainRead, TlsError> {
        if self.has_plain() {
            // The reader fails only where it holds no bytes.
            return Ok(PlainRead::Bytes(self.connection.reader().read(plain).unwrap_or(0)));
        }
        match &self.end {
            None => {
                self.trim();
                Ok(PlainRead::Pending)
            }
            Some(Ok(ended)) => Ok(PlainRead::Ended(*ended)),
            Some(Err(error)) => Err(error.clone()),
        }
    }

    /// Takes plain bytes for the peer and returns how many
    ///
    /// As many as [`OUTGOING_LIMIT`] leaves room for; none during the handshake, after
    /// [`TlsConnection::close`], or once the connection has failed. What is not taken stays with the
    /// caller, to be offered again when bytes were sent or the handshake is over.
    pub fn write(&mut self, plain: &[u8]) -> usize {
        if self.is_handshaking() || self.closed || matches!(self.end, Some(Err(_))) {
            return 0;
        }
        let room = OUTGOING_LIMIT.saturating_sub(self.outgoing.len());
        // The writer fails only where the connection has.
        let taken = self.connection.writer().write(&plain[..plain.len().min(room)]).unwrap_or(0);
        self.collect_outgoing();
        taken
    }

    /// Cipher bytes for the peer; report by [`TlsConnection::sent`] what the socket took
    pub fn outgoing(&self) -> &[u8] {
        &self.outgoing
    }

    /// Notes that the socket took the first `count` bytes of [`TlsConnection::outgoing`]
    ///
    /// # Panics
    /// If there were not so many.
    pub fn sent(&mut self, count: usize) {
        self.outgoing.advance(count);
        if self.outgoing.is_empty() {
            // Most connections wait for the peer most of the time, and then hold no buffer.
            self.outgoing = BytesMut::new();
        }
    }

    /// Ends our side by a `close_notify`, behind what was written; what the peer sends can still
    /// be read
    pub fn close(&mut self) {
        self.closed = true;
        self.connection.send_close_notify();
        self.collect_outgoing();
    }

    /// Hands the library up to 4 KiB and lets it decrypt what is complete
    fn advance(&mut self, rest: &mut &[u8]) -> Result<IoState, rustls::Error> {
        // Reading from memory cannot fail, so an error is the library's: its buffer is full.
        self.connection.read_tls(rest).map_err(|error| rustls::Error::General(error.to_string()))?;
        self.connection.process_new_packets()
    }

    /// Lets the library give back what a large record made it allocate
    ///
    /// It sizes its buffer only when it is about to read, so it is shown a socket that has nothing.
    fn trim(&mut self) {
        struct Silent;
        impl Read for Silent {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
        let _ = self.connection.read_tls(&mut Silent);
    }

    fn failure(&mut self) -> Result<(), TlsError> {
        if self.has_plain() {
            return Ok(());
        }
        self.end.clone().transpose().map(|_| ())
    }

    fn failed(&self, fault: TlsFault, stage: Stage) -> TlsError {
        TlsError { host: self.host.to_string(), stage, fault }
    }

    fn stage(&self) -> Stage {
        if self.is_handshaking() { Stage::Tls } else { Stage::Read }
    }

    /// Moves records from the library, which lends no slice of them, to where one can be lent
    fn collect_outgoing(&mut self) {
        let mut outgoing = (&mut self.outgoing).writer();
        while self.connection.wants_write() {
            // Writing to memory cannot fail, and takes what it is given.
            if self.connection.write_tls(&mut outgoing).is_err() {
                return;
            }
        }
    }
}

/// Shows the state, and no byte of what is transported
impl fmt::Debug for TlsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConnection")
            .field("host", &self.host)
            .field("handshaking", &self.is_handshaking())
            .field("outgoing", &self.outgoing.len())
            .field("end", &self.end)
            .field("closed", &self.closed)
            .finish()
    }
}
