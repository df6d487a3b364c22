//! The server's side of a scenario: how it listens, and what it does on each connection.

use std::time::Duration;

use crate::parse::{self, ParseError};

/// What a scripted server does
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The scenario's name
    pub name: String,
    /// What the server does, in a few words for a table
    pub about: String,
    /// How it listens
    pub server: Server,
    /// What it does on each connection, in the order in which they are accepted
    ///
    /// Never empty where it accepts; the last one serves all further connections.
    pub connections: Vec<Connection>,
}

impl Script {
    /// Reads the server's side of a scenario file
    ///
    /// The caller's side may be absent, as in a script written to test some other client; where it
    /// is present it must be valid too.
    ///
    /// Errors: [`ParseError`], which names the scenario and the field.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::script(text)
    }

    /// What to do on the connection accepted as number `accepted`, from 0
    ///
    /// None where the script accepts no connection at all.
    pub fn connection(&self, accepted: u64) -> Option<&Connection> {
        let mut first_after = 0;
        for connection in &self.connections {
            first_after += u64::from(connection.times);
            if accepted < first_after {
                return Some(connection);
            }
        }
        self.connections.last()
    }
}

/// How a server listens
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// What becomes of those who connect
    pub listen: Listen,
    /// Whether it speaks TLS, from its first step that reads or sends
    pub tls: bool,
    /// Bytes of the kernel's buffer for what comes in; the system's own where absent
    pub receive_buffer: Option<u32>,
    /// Bytes of the kernel's buffer for what goes out; the system's own where absent
    pub send_buffer: Option<u32>,
}

/// What becomes of those who connect
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// They are accepted
    Accept,
    /// The port is closed
    Refuse,
    /// The queue is full and nobody accepts: a SYN goes unanswered
    FullBacklog,
}

/// What a server does on one connection
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// How many connections in a row are served so, at least 1
    pub times: u32,
    /// What it does, in order; the last step ends the connection
    pub steps: Vec<Step>,
}

/// One thing that a server does
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Reads; the connection ends if the peer closes meanwhile
    Read(Read),
    /// Sends these bytes, however long the peer takes to read them
    Send(Vec<u8>),
    /// Does nothing, neither reads nor sends
    Pause(Duration),
    /// Does the steps again and again
    Repeat {
        /// How often; without end where absent
        times: Option<u32>,
        /// The steps, never empty
        steps: Vec<Step>,
    },
    /// Ends the sending side: a FIN, and over TLS one without `close_notify`
    Fin,
    /// Says over TLS that nothing more will come
    CloseNotify,
    /// Reads and forgets, until the peer has closed; ends the connection
    AwaitClose,
    /// Holds the connection open and never reads; ends only with the server
    Hold,
    /// Closes the socket in both directions: a FIN if all was read, else a reset
    Close,
    /// Closes the socket with a reset
    Reset,
}

impl Step {
    /// Whether nothing can follow this step
    pub fn ends(&self) -> bool {
        match self {
            Self::AwaitClose | Self::Hold | Self::Close | Self::Reset => true,
            Self::Repeat { times, .. } => times.is_none(),
            Self::Read(_) | Self::Send(_) | Self::Pause(_) | Self::Fin | Self::CloseNotify => false,
        }
    }
}

/// How much to read
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Until the head of the next request is complete; some of its body may come with it
    Head,
    /// Until the request begun is complete, or else the next one with its body
    Request,
    /// So many bytes, whatever they are
    Bytes(u64),
}
