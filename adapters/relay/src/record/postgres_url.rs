//! Where a PostgreSQL database is, and who asks it.

use std::fmt;
use std::net::IpAddr;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::database::DatabaseError;

/// The variable of the password where the URL has none
const PASSWORD: &str = "PGPASSWORD";

/// A database of PostgreSQL: `postgres://user@host:port/name`, as libpq has it
///
/// `sslmode` is `disable`, or `require` and `verify-full`, which are one: a server's certificate is always
/// checked, against the roots of the system or those that `SSL_CERT_FILE` names. Without it, TLS is used but
/// for a socket of this machine. The password is the URL's, or that of `PGPASSWORD`; no text of this
/// type holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(Box<Config>);

impl PostgresUrl {
    /// Errors: it is no such URL; the text of the error repeats nothing of it.
    pub(super) fn parse(url: &str) -> Result<Self, DatabaseError> {
        // The last one: a password may have others in it.
        let (address, query) = url.rsplit_once('?').unwrap_or((url, ""));
        let mode = query.split('&').find_map(|pair| pair.strip_prefix("sslmode="));
        let query: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("sslmode=")).collect();
        // What the parser says of a URL may repeat a part of a password in it.
        let mut config: Config = format!("{address}?{}", query.join("&"))
            .parse()
            .map_err(|_| DatabaseError::Url("it is none: percent-encode what is special in a password"))?;
        if config.get_hosts().is_empty() {
            return Err(DatabaseError::Url("it names no host"));
        }
        if config.get_user().is_none() {
            return Err(DatabaseError::Url("it names no user"));
        }
        config.ssl_mode(match mode {
            Some("disable") => SslMode::Disable,
            Some("require" | "verify-full") => SslMode::Require,
            Some(_) => {
                return Err(DatabaseError::Url("sslmode is disable, require or verify-full"));
            }
            None if config.get_hosts().iter().all(is_here) => SslMode::Disable,
            None => SslMode::Require,
        });
        config.application_name("steadfast");
        Ok(Self(Box::new(config)))
    }

    /// What a connection is opened with, the password of the environment in it
    pub(super) fn config(&self) -> Config {
        let mut config = Config::clone(&self.0);
        if let (None, Ok(password)) = (config.get_password(), std::env::var(PASSWORD)) {
            config.password(password);
        }
        config
    }
}

/// Without the password
impl fmt::Display for PostgresUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "postgres://{}@", self.0.get_user().unwrap_or_default())?;
        for (index, host) in self.0.get_hosts().iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match host {
                Host::Tcp(name) => write!(out, "{comma}{name}")?,
                #[cfg(unix)]
                Host::Unix(path) => write!(out, "{comma}{}", path.display())?,
            }
            let port = self.0.get_ports().get(index).or(self.0.get_ports().first());
            if let Some(port) = port.filter(|port| **port != 5432) {
                write!(out, ":{port}")?;
            }
        }
        write!(out, "/{}", self.0.get_dbname().or(self.0.get_user()).unwrap_or_default())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PostgresUrl({self})")
    }
}

/// Whether what is said to that host stays on this machine
fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_holds_the_password() {
        for (url, shown) in [
            ("postgres://relay:s3cret@db.example/calls", "postgres://relay@db.example/calls"),
            ("postgresql://relay:s3cret@10.1.2.3:6000/calls", "postgres://relay@10.1.2.3:6000/calls"),
            ("postgres://relay@localhost?password=s3cret", "postgres://relay@localhost/relay"),
        ] {
            let parsed = PostgresUrl::parse(url).unwrap();
            assert_eq!(parsed.to_string(), shown);
            assert!(!format!("{parsed:?}").contains("s3cret"));
            assert_eq!(parsed.config().get_password(), Some(&b"s3cret"[..]));
        }
        for url in [
            "postgres://relay:s3cret@/calls?user=a",
            "postgres://relay:s3cret@host:port/calls",
            "postgres://relay:s3cret@host/calls?sslmode=s3cret",
        ] {
            let error = PostgresUrl::parse(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn what_leaves_the_machine_is_encrypted_unless_the_url_says_otherwise() {
        for (url, mode) in [
            ("postgres://a@db.example/b", SslMode::Require),
            ("postgres://a@127.0.0.1,db.example/b", SslMode::Require),
            ("postgres://a@localhost/b", SslMode::Disable),
            ("postgres://a@[::1]/b", SslMode::Disable),
            ("postgres:///b?host=/tmp/sockets&user=a", SslMode::Disable),
            ("postgres://a@localhost/b?sslmode=verify-full", SslMode::Require),
            ("postgres://a@db.example/b?sslmode=disable&connect_timeout=3", SslMode::Disable),
        ] {
            assert_eq!(PostgresUrl::parse(url).unwrap().config().get_ssl_mode(), mode, "{url}");
        }
        for mode in ["prefer", "allow", ""] {
            let url = format!("postgres://a@db.example/b?sslmode={mode}");
            let error = PostgresUrl::parse(&url).unwrap_err();
            assert!(error.to_string().contains("sslmode is disable, require or verify-full"), "{error}");
        }
    }
}
