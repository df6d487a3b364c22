//! Name look-up, TCP and TLS.

use std::io;
use std::sync::Arc;

use steadfast::call::Origin;
use steadfast::machine::{FailureKind, IoFailure, Stage};
use steadfast_driver::{Connection, Handshake, io_failure};
use tokio::net::{TcpStream, lookup_host};

use crate::client::Trust;
use crate::runtime::TcpSocket;

/// Opens a connection to `origin`; the machine's `connect_timeout` drops this
pub(crate) async fn connect(origin: Origin, trust: Arc<Trust>) -> Result<Connection<TcpSocket>, IoFailure> {
    let socket = TcpSocket::new(connect_tcp(&origin).await?);
    if origin.is_tls() {
        Handshake::new(socket, trust.tls()?, origin.host())?.await
    } else {
        Ok(Connection::plain(socket))
    }
}

/// Connects to the first address that answers
async fn connect_tcp(origin: &Origin) -> Result<TcpStream, IoFailure> {
    let addresses = lookup_host((origin.host(), origin.port())).await.map_err(|error| {
        let failure = io_failure(Stage::Resolve, &error);
        IoFailure { message: format!("{}: {}", origin.host(), failure.message), ..failure }
    })?;
    let mut failure = IoFailure {
        stage: Stage::Resolve,
        kind: FailureKind::NotFound,
        message: format!("{}: the name has no address", origin.host()),
    };
    for address in addresses {
        match TcpStream::connect(address).await.and_then(no_delay) {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                let of_address = io_failure(Stage::Connect, &error);
                failure = IoFailure { message: format!("{address}: {}", of_address.message), ..of_address };
            }
        }
    }
    Err(failure)
}

/// Requests are written in as few pieces as can be, so waiting to join them only costs time
fn no_delay(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}
