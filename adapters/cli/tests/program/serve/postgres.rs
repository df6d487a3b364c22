//! Records in PostgreSQL, against a real server: see `postgres_server`.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use super::postgres_server::{PASSWORD, Server};
use super::support::{ConfigFile, Provider, Serving};
use crate::support::{Ran, await_text, run, spawn, steadfast};

fn config(name: &str, server: &Server, more: &str) -> ConfigFile {
    let upstream = "[upstream.openai]\nurl = \"http://127.0.0.1:1\"\n";
    ConfigFile::new(name, &format!("[recording]\ndatabase = {:?}\n{more}\n{upstream}", server.url()))
}

fn serve(config: &ConfigFile, provider: &Provider) -> Serving {
    Serving::start(&["--config", config.path(), "--upstream", &format!("openai={}", provider.url)])
}

fn calls(server: &Server, arguments: &[&str]) -> Ran {
    run(steadfast(&["calls", "--database", &server.url()]).args(arguments))
}

/// The paths of all calls that are over, in the order in which they began
fn paths(server: &Server) -> Vec<String> {
    let ran = calls(server, &["--json", "--limit", "1000"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let calls = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    calls
        .filter(|call| call["ended"].is_number())
        .map(|call| call["target"].as_str().expect("a target").to_owned())
        .collect()
}

fn path(number: usize) -> String {
    format!("/openai/v1/{number}")
}

#[test]
fn two_relays_share_a_port_and_a_database() {
    let Some(server) = Server::start("two") else { return };
    let config = config("pg-two", &server, "");
    let provider = Provider::new();
    let upstream = format!("openai={}", provider.url);
    let more = ["--config", config.path(), "--share-port", "--upstream", &upstream];
    let first = Serving::start(&more);
    let mut following = spawn(&mut steadfast(&["calls", "--database", &server.url(), "--follow"]));
    let mut lines = BufReader::new(following.stdout.take().expect("a pipe"));
    await_text(&mut lines, "BEGUN");
    // The first ones are of the first relay, the last ones of the second.
    for number in 0..5 {
        first.pass(&provider, &path(number));
    }
    let second = Serving::with(&mut steadfast(&["serve", "--json", "--listen", first.address()]), &more);
    for number in 5..35 {
        first.pass(&provider, &path(number));
    }
    assert_eq!(first.stop().code, Some(0));
    for number in 35..40 {
        second.pass(&provider, &path(number));
    }
    let mut followed = String::new();
    while !followed.contains(&path(39)) {
        assert_ne!(lines.read_line(&mut followed).expect("a pipe"), 0, "{followed}");
    }
    following.kill().expect("it runs");
    following.wait().expect("it ends");
    let ended = second.stop();
    assert!(ended.is_quiet(), "{:?} {}", ended.code, ended.said);

    assert_eq!(paths(&server), (0..40).map(path).collect::<Vec<_>>());
    let mut rows: Vec<&str> = followed.lines().filter_map(|row| row.split("POST ").nth(1)).collect();
    assert_eq!(rows.len(), 40, "{followed}");
    rows.sort_unstable();
    rows.dedup();
    assert_eq!(rows.len(), 40, "{followed}");
    assert_eq!(server.query("SELECT count(*) FROM steadfast.sizes"), "2\n");
    assert_eq!(
        server.query("SELECT sum(bytes) = (SELECT sum(size) FROM steadfast.calls) FROM steadfast.sizes"),
        "t\n"
    );
}

#[test]
fn many_relays_that_start_at_once_make_the_tables_once() {
    let Some(server) = Server::start("many") else { return };
    let config = config("pg-many", &server, "");
    let start = || Serving::start(&["--config", config.path()]);
    let relays: Vec<Serving> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..6).map(|_| scope.spawn(start)).collect();
        starts.into_iter().map(|start| start.join().expect("it starts")).collect()
    });
    for relay in &relays {
        assert!(relay.answer("/nowhere", "", "{}").starts_with("HTTP/1.1 404 "));
    }
    for relay in relays {
        let ended = relay.stop();
        assert!(ended.is_quiet(), "{}", ended.said);
    }
    assert_eq!(paths(&server).len(), 6);
    assert_eq!(server.query("SELECT * FROM steadfast.version"), "1\n");
}

#[test]
fn while_the_server_is_away_calls_go_on_and_records_wait_up_to_a_bound() {
    let Some(mut server) = Server::start("away") else { return };
    let config = config("pg-away", &server, "max_queued_bytes = 6000");
    let provider = Provider::new();
    let relay = serve(&config, &provider);
    relay.pass(&provider, &path(0));
    while paths(&server).is_empty() {}
    server.stop();
    // A call is at least four records of 256 bytes, so that there is no room for all of this.
    for number in 1..40 {
        relay.pass(&provider, &path(number));
    }
    server.run_again();
    while paths(&server).len() < 2 {}
    // What waited is written before what comes now.
    relay.pass(&provider, &path(40));
    while paths(&server).last() != Some(&path(40)) {}
    let ended = relay.stop();
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.said.contains(" parts of records were dropped: the records in postgres://relay@"),
        "{}",
        ended.said
    );
    assert!(!ended.said.contains(PASSWORD), "{}", ended.said);
    let lost = server.query("SELECT count(*) FROM steadfast.calls WHERE method IS NULL");
    assert_ne!(lost, "0\n");
}

#[test]
fn a_relay_starts_without_the_server_and_records_once_it_is_there() {
    let Some(mut server) = Server::start("late") else { return };
    server.stop();
    let config = config("pg-late", &server, "");
    let provider = Provider::new();
    let mut relay = serve(&config, &provider);
    relay.await_said("records wait: the records in postgres://relay@");
    for number in 0..10 {
        relay.pass(&provider, &path(number));
    }
    server.run_again();
    let ended = relay.stop();
    assert_eq!((ended.code, ended.said.contains("dropped")), (Some(0), false), "{}", ended.said);
    assert_eq!(paths(&server), (0..10).map(path).collect::<Vec<_>>());
}

#[test]
fn what_is_too_much_goes_the_oldest_first() {
    let Some(server) = Server::start("much") else { return };
    let config = config("pg-much", &server, "max_bytes = 150000");
    let relay = Serving::start(&["--config", config.path()]);
    for number in 0..300 {
        assert!(relay.answer(&format!("/nowhere/{number}"), "", "{}").starts_with("HTTP/1.1 404 "));
    }
    assert_eq!(relay.stop().code, Some(0));
    let left = paths(&server);
    assert!((1..300).contains(&left.len()), "{}", left.len());
    assert_eq!(left.last().map(String::as_str), Some("/nowhere/299"));
    let sums = "SELECT (SELECT sum(bytes) FROM steadfast.sizes) = (SELECT sum(size) FROM steadfast.calls), \
                (SELECT sum(bytes) FROM steadfast.sizes) <= 150000, \
                (SELECT count(*) FROM steadfast.pieces WHERE call < (SELECT min(key) FROM steadfast.calls))";
    assert_eq!(server.query(sums), "t|t|0\n");
}

#[test]
fn who_may_not_in_is_told_so_without_the_password() {
    let Some(server) = Server::start("refused") else { return };
    let nobody = run(&mut steadfast(&["calls", "--database", &server.url()]));
    assert_eq!(nobody.code, Some(2));
    assert!(nobody.stderr.contains("no relay has recorded in postgres://relay@"), "{}", nobody.stderr);
    assert!(!nobody.stderr.contains(PASSWORD), "{}", nobody.stderr);

    let wrong = server.url().replace(PASSWORD, "wr0ng-secret");
    let text = format!("[recording]\ndatabase = {wrong:?}\n[upstream.openai]\n");
    let config = ConfigFile::new("pg-wrong", &text);
    let refused = run(&mut steadfast(&["serve", "--listen", "127.0.0.1:0", "--config", config.path()]));
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("password authentication failed"), "{}", refused.stderr);
    let checked = run(&mut steadfast(&["serve", "--check", "--config", config.path()]));
    assert!(checked.stdout.contains("postgres://relay@"), "{} {}", checked.stdout, checked.stderr);
    for ran in [&refused, &checked] {
        assert!(!format!("{ran:?}").contains("wr0ng"), "{ran:?}");
    }

    // The password of the environment will do.
    let text = format!("[recording]\ndatabase = {:?}\n[upstream.openai]\n", server.open_url());
    config.write(&text);
    let mut command = steadfast(&["serve", "--json", "--listen", "127.0.0.1:0", "--config", config.path()]);
    let relay = Serving::with(command.env("PGPASSWORD", PASSWORD), &[]);
    assert!(relay.answer("/nowhere", "", "{}").starts_with("HTTP/1.1 404 "));
    let ended = relay.stop();
    assert!(ended.is_quiet(), "{}", ended.said);
    assert_eq!(paths(&server), ["/nowhere"]);
}

#[test]
fn tls_is_checked_against_the_roots() {
    let Some((server, certificate)) = Server::start_with_tls("tls") else { return };
    let text = format!("[recording]\ndatabase = {:?}\n[upstream.openai]\n", server.tls_url());
    let config = ConfigFile::new("pg-tls", &text);
    let arguments = ["serve", "--json", "--listen", "127.0.0.1:0", "--config", config.path()];
    let refused = run(&mut steadfast(&arguments));
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("error performing TLS handshake: "), "{}", refused.stderr);
    assert!(!refused.stderr.contains(PASSWORD), "{}", refused.stderr);

    let relay = Serving::with(steadfast(&arguments).env("SSL_CERT_FILE", &certificate), &[]);
    let encrypted =
        "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'steadfast'";
    assert_eq!(server.query(encrypted), "t\n");
    assert!(relay.answer("/nowhere", "", "{}").starts_with("HTTP/1.1 404 "));
    let ended = relay.stop();
    assert!(ended.is_quiet(), "{}", ended.said);
    assert_eq!(server.query("SELECT target FROM steadfast.calls"), "/nowhere\n");
}
