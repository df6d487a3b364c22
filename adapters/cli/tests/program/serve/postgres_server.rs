//! A server of PostgreSQL of a test's own.

use std::fs;
use std::io::{BufReader, copy, sink};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::support::{await_text, run, signal};

/// Who runs the server where the test is root, which it refuses
const NOBODY: u32 = 65_534;
/// The password of its only user
pub(super) const PASSWORD: &str = "pg-s3cret-77";

/// A server on a socket in a folder of its own, both of which go with the test
pub(super) struct Server {
    folder: PathBuf,
    programs: PathBuf,
    /// Where it listens beside its socket, with TLS
    port: Option<u16>,
    running: Option<Child>,
}

impl Server {
    /// A new one that runs; `None` where PostgreSQL is not installed
    pub(super) fn start(name: &str) -> Option<Self> {
        let mut server = Self::new(name)?;
        server.run_again();
        Some(server)
    }

    /// One that speaks TLS as `localhost`, too, by a certificate that is in the file it returns
    pub(super) fn start_with_tls(name: &str) -> Option<(Self, PathBuf)> {
        let mut server = Self::new(name)?;
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let (certificate, key) = (server.folder.join("server.crt"), server.folder.join("server.key"));
        fs::write(&certificate, made.cert.pem()).expect("a file");
        fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("our file");
        if is_root() {
            chown(&key, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        server.port = Some(free.expect("a port").port());
        server.run_again();
        Some((server, certificate))
    }

    /// Its URL for TLS, with the password
    pub(super) fn tls_url(&self) -> String {
        let port = self.port.expect("it has one");
        format!("postgres://relay:{PASSWORD}@localhost:{port}/postgres?sslmode=verify-full")
    }

    fn new(name: &str) -> Option<Self> {
        // Where it leads to, and not by a way through a home that is closed to others.
        let postgres = fs::canonicalize(steadfast_tests::peers::path("postgres", "bin/postgres")?);
        let programs = postgres.expect("it exists").parent()?.to_owned();
        // The path of a socket has to be short.
        let folder = std::env::temp_dir().join(format!("sf-pg-{name}-{}", std::process::id()));
        _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a folder");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("our folder");
        fs::write(folder.join("password"), PASSWORD).expect("a file");
        if is_root() {
            chown(&folder, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        let server = Self { folder, programs, port: None, running: None };
        let made = run(server
            .program("initdb")
            .args(["-D", "data", "-U", "relay", "-A", "scram-sha-256", "--pwfile", "password", "-N"])
            .args(["-E", "UTF8", "--locale", "C"]));
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        Some(server)
    }

    /// Runs it, from the moment at which it takes connections
    pub(super) fn run_again(&mut self) {
        let folder = self.folder.display();
        let tls = match self.port {
            None => vec!["-clisten_addresses=".to_owned()],
            Some(port) => vec![
                "-clisten_addresses=127.0.0.1".to_owned(),
                format!("-cport={port}"),
                "-cssl=on".to_owned(),
                format!("-cssl_cert_file={folder}/server.crt"),
                format!("-cssl_key_file={folder}/server.key"),
            ],
        };
        let mut child = self
            .program("postgres")
            .args(["-D", "data", "-c", "fsync=off"])
            .args(tls)
            .args(["-c", &format!("unix_socket_directories={folder}")])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
        await_text(&mut said, "ready to accept connections");
        thread::spawn(move || copy(&mut said, &mut sink()));
        self.running = Some(child);
    }

    /// Stops it, with all connections, and waits for its end
    pub(super) fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            signal(&running, "INT");
            running.wait().expect("it ends");
        }
    }

    /// Its URL, with the password
    pub(super) fn url(&self) -> String {
        format!("postgres:///postgres?user=relay&password={PASSWORD}&host={}", self.folder.display())
    }

    /// The same, without
    pub(super) fn open_url(&self) -> String {
        format!("postgres:///postgres?user=relay&host={}", self.folder.display())
    }

    /// What a query says, a line for each row
    pub(super) fn query(&self, sql: &str) -> String {
        self.client("psql", &["-At", "-c", sql])
    }

    /// All that is in it, as text
    pub(super) fn dump(&self) -> String {
        self.client("pg_dump", &["--inserts"])
    }

    fn client(&self, program: &str, arguments: &[&str]) -> String {
        let host = self.folder.to_str().expect("a path in UTF-8");
        let ran = run(self
            .program(program)
            .args(["-h", host, "-p", &self.port.unwrap_or(5432).to_string(), "-U", "relay", "-d", "postgres"])
            .args(arguments)
            .env("PGPASSWORD", PASSWORD));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(&self.folder).stdin(Stdio::null());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            signal(&running, "QUIT");
            _ = running.wait();
        }
        _ = fs::remove_dir_all(&self.folder);
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
