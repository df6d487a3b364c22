//! What is asked of the operating system for a TCP connection.

use std::io;

use socket2::{SockRef, TcpKeepalive};
use steadfast::connect::TcpSettings;

/// Asks the operating system for these settings of a connection
///
/// Errors: as the operating system's.
pub fn set_up(socket: SockRef<'_>, settings: TcpSettings) -> io::Result<()> {
    // Requests are written in as few pieces as can be, so waiting to join them only costs time.
    socket.set_tcp_nodelay(true)?;
    if let Some(every) = settings.keep_alive_every() {
        let probes = TcpKeepalive::new().with_time(every);
        #[cfg(any(target_os = "linux", target_os = "android", target_os = "macos", target_os = "windows"))]
        let probes = probes.with_interval(every);
        socket.set_tcp_keepalive(&probes)?;
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(most) = settings.user_timeout_after() {
        socket.set_tcp_user_timeout(Some(most))?;
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_operating_system_is_asked_for_what_was_set() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let stream = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let socket = SockRef::from(&stream);
        let off = TcpSettings::default().keep_alive(None);
        set_up(SockRef::from(&stream), off).expect("a set-up");
        assert_eq!((socket.tcp_nodelay().ok(), socket.keepalive().ok()), (Some(true), Some(false)));
        let [every, most] = [7, 9].map(Duration::from_secs);
        let on = TcpSettings::default().keep_alive(Some(every)).user_timeout(Some(most));
        set_up(SockRef::from(&stream), on).expect("a set-up");
        assert_eq!(socket.keepalive().ok(), Some(true));
        assert_eq!(socket.tcp_keepalive_time().ok(), Some(every));
        assert_eq!(socket.tcp_keepalive_interval().ok(), Some(every));
        assert_eq!(socket.tcp_user_timeout().ok(), Some(Some(most)));
    }
}
