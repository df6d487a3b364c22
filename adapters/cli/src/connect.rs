//! How the program's calls connect.

#[cfg(unix)]
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use steadfast_tokio::{Client, TcpSettings};

/// What the command line says of connections
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectArgs {
    /// Connect to the Unix socket there, whatever host the base URL names, and through no proxy; without
    /// a base URL, the server there is asked in plain HTTP
    #[cfg(unix)]
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<PathBuf>,

    /// Ask after so long a silence, and then as often, whether the peer is there [default: 60]
    #[arg(long, value_name = "SECONDS|off")]
    tcp_keep_alive: Option<Seconds>,

    /// How long what was sent may go without an acknowledgement [default: the system's own]
    #[arg(long, value_name = "SECONDS|off")]
    tcp_user_timeout: Option<Seconds>,
}

impl ConnectArgs {
    /// Whether all connections lead to a Unix socket
    pub(crate) fn is_to_socket(&self) -> bool {
        #[cfg(unix)]
        return self.unix_socket.is_some();
        #[cfg(not(unix))]
        false
    }

    /// The client with these connections
    pub(crate) fn applied_to(&self, client: Client) -> Client {
        let client = client.with_tcp(self.tcp());
        #[cfg(unix)]
        if let Some(path) = &self.unix_socket {
            return client.with_unix_socket(path);
        }
        client
    }

    fn tcp(&self) -> TcpSettings {
        let mut tcp = TcpSettings::default();
        if let Some(Seconds(every)) = self.tcp_keep_alive {
            tcp = tcp.keep_alive(every);
        }
        if let Some(Seconds(most)) = self.tcp_user_timeout {
            tcp = tcp.user_timeout(most);
        }
        tcp
    }
}

/// A time in seconds; none for `off`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seconds(Option<Duration>);

impl FromStr for Seconds {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self(None));
        }
        let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let seconds = seconds.filter(|seconds| !seconds.is_zero());
        seconds.map(|seconds| Self(Some(seconds))).ok_or("takes a number of seconds above 0, or off")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_off() {
        let parsed = |text: &str| text.parse::<Seconds>().ok().map(|Seconds(time)| time);
        assert_eq!(parsed("off"), Some(None));
        assert_eq!(parsed("1.5"), Some(Some(Duration::from_millis(1500))));
        for text in ["", "0", "-1", "nan", "inf", "1s", "never"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_not_said_stays_as_it_is() {
        let args = |keep_alive: Option<&str>, user_timeout: Option<&str>| {
            let seconds = |text: &str| text.parse().unwrap();
            let (tcp_keep_alive, tcp_user_timeout) = (keep_alive.map(seconds), user_timeout.map(seconds));
            ConnectArgs { tcp_keep_alive, tcp_user_timeout, ..ConnectArgs::default() }.tcp()
        };
        let default = TcpSettings::default();
        assert_eq!(args(None, None), default);
        assert_eq!(args(Some("off"), None), default.keep_alive(None));
        let time = Some(Duration::from_secs(20));
        assert_eq!(args(Some("20"), Some("20")), default.keep_alive(time).user_timeout(time));
        assert_eq!(args(None, Some("off")), default);
    }
}
