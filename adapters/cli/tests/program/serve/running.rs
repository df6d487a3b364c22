//! A relay that is told to stop, or to read its configuration again.

use std::process::Command;

use steadfast_relay::Side;
use steadfast_relay::record::{Calls, Database};

use super::support::{APP_KEY_HASH, ConfigFile, Peer, Provider, Serving};
use crate::support::steadfast;

const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A stream that has begun: the app's end and the provider's
fn stream(serving: &Serving, provider: &Provider) -> (Peer, Peer) {
    let mut app = serving.ask("/local/v1/x", "", "{}");
    let (mut peer, _) = provider.accept();
    peer.send(&format!("{HEAD}1\r\na\r\n"));
    assert_eq!(app.until("1\r\na\r\n"), format!("{HEAD}1\r\na\r\n"));
    (app, peer)
}

fn relay(name: &str, provider: &Provider, more: &str) -> (Serving, ConfigFile) {
    let file = ConfigFile::new(name, &config(provider, more));
    (Serving::start(&["--config", file.path()]), file)
}

fn config(provider: &Provider, more: &str) -> String {
    format!("{more}\n[upstream.local]\nurl = \"{}\"\n", provider.url)
}

#[test]
fn told_to_stop_it_finishes_what_runs_and_refuses_what_is_new() {
    for stop in ["TERM", "INT"] {
        let provider = Provider::new();
        let (mut serving, _file) = relay(&format!("drain-{stop}"), &provider, "");
        let (mut app, mut peer) = stream(&serving, &provider);
        serving.signal(stop);
        serving.await_said(
            "steadfast: draining: 1 connection open, up to 30 s; a second signal stops at once\n",
        );
        let refused = serving.answer("/local/v1/x", "", "{}");
        assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("gateway_draining"), "{refused}");
        assert!(refused.contains("\r\nretry-after: "), "{refused}");
        peer.send("1\r\nb\r\n0\r\n\r\n");
        assert_eq!(app.rest(), "1\r\nb\r\n0\r\n\r\n");
        drop(app);
        let ended = serving.end();
        assert_eq!((ended.code, ended.said.as_str()), (Some(0), ""), "{stop}");
        assert!(provider.is_alone());
    }
}

#[test]
fn past_the_drain_bound_what_runs_is_cut_off() {
    let provider = Provider::new();
    let (mut serving, _file) = relay("drain-bound", &provider, "drain = 0.2");
    let (mut app, mut peer) = stream(&serving, &provider);
    serving.signal("TERM");
    serving.await_said("the drain bound of 0.2 s is reached: 1 connection cut off\n");
    assert_eq!(app.rest(), "", "nothing is added");
    assert_eq!(peer.rest(), "");
    assert_eq!(serving.end().code, Some(1));
}

#[test]
fn a_second_signal_stops_at_once() {
    let provider = Provider::new();
    let (mut serving, _file) = relay("second", &provider, "drain = inf");
    let (mut app, mut peer) = stream(&serving, &provider);
    serving.signal("TERM");
    serving.await_said("draining: 1 connection open");
    serving.signal("TERM");
    assert_eq!((app.rest(), peer.rest()), (String::new(), String::new()));
    assert_eq!(serving.end().code, Some(130));
}

#[test]
fn a_configuration_that_is_read_again_moves_a_route_and_drops_no_call() {
    let (old, new) = (Provider::new(), Provider::new());
    let (mut serving, file) = relay("reload", &old, "");
    let (mut app, mut peer) = stream(&serving, &old);

    file.write("[upstream.local]\nurl = 3\n");
    serving.signal("HUP");
    serving.await_said(&format!(
        "the configuration in force stays: {}:2: upstream.local.url takes a URL\n",
        file.path()
    ));
    let _still_old = serving.ask("/local/v1/x", "", "{}");
    old.accept();

    file.write(&config(&new, "listen = \"127.0.0.1:1\"\nshare_port = true"));
    serving.signal("HUP");
    serving.await_said("steadfast: share_port takes effect with the next start\n");
    serving.await_said("steadfast: the configuration was read again and is in force\n");
    let mut moved = serving.ask("/local/v1/x", "", "{}");
    let (mut moved_peer, _) = new.accept();
    moved_peer.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew");
    assert!(moved.until("new").ends_with("\r\n\r\nnew"));

    peer.send("1\r\nb\r\n0\r\n\r\n");
    assert_eq!(app.until("0\r\n\r\n"), "1\r\nb\r\n0\r\n\r\n");
    // The connection that began before goes where the others go.
    app.send("POST /local/v1/y HTTP/1.1\r\nHost: relay\r\nContent-Length: 2\r\n\r\n{}");
    moved_peer.until("\r\n\r\n{}");
    moved_peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    app.until("\r\n\r\n");
    drop((app, moved, _still_old));
    assert_eq!(serving.stop().code, Some(0));
}

#[test]
fn an_address_that_others_reach_stays_closed_to_those_without_a_key() {
    let provider = Provider::new();
    let keys = format!("[keys]\nlaptop = \"{APP_KEY_HASH}\"");
    let file = ConfigFile::new("open", &config(&provider, &format!("listen = \"0.0.0.0:0\"\n{keys}")));
    let mut serving = Serving::with(&mut steadfast(&["serve", "--json", "--config", file.path()]), &[]);
    let port = serving.address().rsplit(':').next().expect("a port").to_owned();
    serving.listening["listening"] = format!("127.0.0.1:{port}").into();
    // The address that the file names now needs no keys, but it is not where the relay listens.
    file.write(&config(&provider, "listen = \"127.0.0.1:1\""));
    serving.signal("HUP");
    serving.await_said("the configuration in force stays: ");
    serving.await_said("listen = 0.0.0.0:0 lets in whoever reaches that address");
    let refused = serving.answer("/local/v1/x", "", "{}");
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    assert!(provider.is_alone());
    assert_eq!(serving.stop().code, Some(0));
}

#[test]
fn too_few_descriptors_are_told() {
    let mut command = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_steadfast");
    command.args(["-c", "ulimit -n 128; exec \"$0\" \"$@\"", program, "serve", "--json"]);
    let mut serving = Serving::with(&mut command, &["--listen", "127.0.0.1:0", "--upstream", "openai"]);
    serving.await_said(
        "the system allows 128 open files: connections of apps past 32 are refused; raise `ulimit -n`\n",
    );
    assert_eq!(serving.stop().code, Some(0));
}

#[test]
fn what_went_through_is_recorded_when_it_ends() {
    let provider = Provider::new();
    let database = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("calls-{}.db", std::process::id()));
    let (serving, _file) = relay("recorded", &provider, &format!("[recording]\ndatabase = {database:?}"));
    let mut app = serving.ask("/local/v1/x", "authorization: Bearer sk-of-the-app\r\n", "{}");
    let (mut peer, _) = provider.accept();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nthe-words");
    app.until("the-words");
    drop(app);
    let ended = serving.stop();
    assert!(ended.is_quiet(), "{:?} {}", ended.code, ended.said);
    let calls = Calls::open(&Database::File(database.clone())).expect("records");
    let call = calls.recent(9).expect("a list").remove(0);
    let ended = (&*call.target, call.status, call.ending.as_deref(), call.route.as_deref());
    assert_eq!(ended, ("/local/v1/x", Some(200), Some("passed"), Some("local")));
    let answer = calls.body(&call, Side::Answer).expect("a body");
    assert_eq!(answer.runs(), [(0, b"the-words".to_vec())]);
    assert!(!format!("{:?}", call.request_head).contains("sk-of-the-app"), "{:?}", call.request_head);
    drop(calls);
    // The target directory may keep what cannot be removed.
    for end in ["", "-wal", "-shm"] {
        _ = std::fs::remove_file(format!("{}{end}", database.display()));
    }
}
