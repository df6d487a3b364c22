//! Over Unix sockets: the URL's host is told and verified, but not looked up.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast::config::Overrides;
use steadfast::connect::{Proxies, Proxy};
use steadfast::machine::{FailureKind, Stage};
use steadfast::outcome::{Billing, ErrorKind, Phase};

use crate::certificates::Authority;
use crate::clients::{CLIENTS, Setup, request};
use crate::server::Origin;

/// A path that is free, and removed in the end
struct Free(PathBuf);

impl Free {
    fn path(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("steadfast-{}-{name}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn at(path: &Path) -> Setup {
        Setup { unix_socket: Some(path.to_owned()), ..Setup::default() }
    }
}

impl Drop for Free {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn calls_go_over_a_unix_socket_and_its_connections_are_reused() {
    let authority = Authority::new("Our Authority");
    let serving = authority.issue("api.example").serving();
    for (name, calls) in CLIENTS {
        for is_secure in [false, true] {
            let free = Free::path(name);
            let origin = Origin::start(None);
            let tls = is_secure.then(|| serving.clone());
            let connections = origin.listen_at(&free.0, tls);
            // Nobody listens at that proxy, nor does the name exist.
            let proxies = Proxies::all(Proxy::new("http://127.0.0.1:9").expect("a proxy"));
            let setup = Setup { tls: is_secure.then(|| authority.trusted()), proxies, ..Free::at(&free.0) };
            let url = format!("http{}://api.example/v1", if is_secure { "s" } else { "" });
            let outcomes =
                calls(&setup, vec![request(&url, Overrides::new()), request(&url, Overrides::new())]);
            for outcome in outcomes {
                let body = outcome.result.as_ref().map(|completion| &completion.body[..]);
                assert_eq!(body.ok(), Some(&b"Hi"[..]), "{name}: {:?}", outcome.result);
            }
            let heads = origin.heads();
            assert_eq!(heads.len(), 2);
            for head in heads {
                assert!(head.starts_with("POST /v1 HTTP/1.1\r\nhost: api.example\r\n"), "{head}");
            }
            // The client on threads has no pool.
            let expected = if name == "blocking" { 2 } else { 1 };
            assert_eq!(connections.load(Ordering::Relaxed), expected, "{name}");
        }
    }
}

#[test]
fn a_path_where_nobody_listens_fails_at_once_and_is_named() {
    let free = Free::path("nobody");
    let stale = Free::path("stale");
    // What a server leaves that was killed
    drop(UnixListener::bind(&stale.0).expect("a path"));
    for (path, kind) in [(&free.0, FailureKind::NotFound), (&stale.0, FailureKind::Refused)] {
        for (name, calls) in CLIENTS {
            let outcomes = calls(&Free::at(path), vec![request("http://localhost/v1", Overrides::new())]);
            let error = outcomes[0].result.as_ref().expect_err("a failure");
            let ErrorKind::Transport(failure) = &error.kind else { panic!("{name}: {error}") };
            assert_eq!(
                (failure.stage, failure.kind, error.billing),
                (Stage::Connect, kind, Billing::NotSent),
                "{name}"
            );
            assert!(failure.message.starts_with(&path.display().to_string()), "{failure}");
        }
    }
}

#[test]
fn a_server_that_does_not_go_on_ends_at_its_bound() {
    const LIMIT: Duration = Duration::from_millis(100);
    let free = Free::path("mute");
    // Connections are made, and never accepted.
    let _listener = UnixListener::bind(&free.0).expect("a path");
    let setup = Setup { tls: Some(Authority::new("Our Authority").trusted()), ..Free::at(&free.0) };
    for (name, calls) in CLIENTS {
        for (scheme, phase) in [("https", Phase::Connect), ("http", Phase::Request)] {
            let seconds = LIMIT.as_secs_f64();
            let overrides = match phase {
                Phase::Connect => Overrides::new().connect_timeout(seconds),
                _ => Overrides::new().request_timeout(seconds),
            };
            let outcomes = calls(&setup, vec![request(&format!("{scheme}://localhost/v1"), overrides)]);
            let error = outcomes[0].result.as_ref().expect_err("a breach");
            let ErrorKind::Timeout(timeout) = &error.kind else { panic!("{name}: {error}") };
            assert_eq!((timeout.phase, timeout.limit), (phase, LIMIT), "{name}");
        }
    }
}
