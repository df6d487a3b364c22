//! The configuration in force on threads: scopes, spawned threads, calls.

#![allow(clippy::wildcard_enum_match_arm, reason = "whatever else comes fails the test")]

use std::net::TcpListener;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use serde_json::json;
use steadfast_blocking::{
    Client, Dialect, ErrorKind, Field, Outcome, Overrides, Phase, Proxies, Request, RequestConfig, Scope,
    Timeout, spawn,
};

fn attempts(count: u32) -> Overrides {
    Overrides::new().max_attempts(count)
}

/// The attempts in force, which stand for the whole configuration
fn in_force() -> u32 {
    RequestConfig::current().config().max_attempts().get()
}

/// A server that takes connections and requests and says nothing, and its URL
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    (listener, url)
}

fn client() -> Client {
    Client::new().with_proxies(Proxies::none())
}

fn request(url: &str) -> Request {
    let request = Request::post(url).json(&json!({"stream": true})).dialect(Dialect::OpenAiChat);
    request.stream().build().expect("a valid request")
}

fn timeout(outcome: Outcome) -> Timeout {
    match outcome.result.expect_err("a timeout").kind {
        ErrorKind::Timeout(timeout) => timeout,
        other => panic!("{other}"),
    }
}

#[test]
fn cfg_3_a_spawned_thread_is_in_the_scope_of_whoever_spawns_it() {
    RequestConfig::sync_scope(&attempts(7), || {
        let nested = spawn(|| (in_force(), spawn(in_force).join().expect("a thread")));
        assert_eq!(nested.join().expect("a thread"), (7, 7));
        let scope = Scope::current();
        let scoped =
            thread::scope(|threads| threads.spawn(|| scope.in_scope(in_force)).join().expect("a thread"));
        assert_eq!(scoped, 7);
        assert_eq!(thread::spawn(in_force).join().expect("a thread"), 3, "std's own");
    })
    .expect("in range");
    assert_eq!(spawn(in_force).join().expect("a thread"), 3);
}

#[test]
fn cfg_3_scopes_of_threads_nest_and_see_nothing_of_each_other() {
    let together = Barrier::new(8);
    thread::scope(|threads| {
        for count in 10..18 {
            let together = &together;
            threads.spawn(move || {
                let inner = RequestConfig::sync_scope(&attempts(count), || {
                    together.wait();
                    let inner = RequestConfig::sync_scope(&attempts(count + 100), || {
                        together.wait();
                        in_force()
                    });
                    (inner, in_force())
                });
                assert_eq!(inner, Ok((Ok(count + 100), count)));
                assert_eq!(in_force(), 3);
            });
        }
    });
}

#[test]
fn cfg_3_a_scope_survives_a_changed_default() {
    let tool_timeout = || RequestConfig::current().config().get(Field::ToolTimeout);
    let default = |seconds: f64| {
        RequestConfig::set_default_overrides(&Overrides::new().tool_timeout(seconds)).expect("in range");
    };
    default(5.0);
    RequestConfig::sync_scope(&attempts(7), || {
        default(6.0);
        assert_eq!((tool_timeout(), in_force()), ("5".to_owned(), 7));
        assert_eq!(spawn(tool_timeout).join().expect("a thread"), "5");
    })
    .expect("in range");
    assert_eq!(tool_timeout(), "6");
}

#[test]
fn cfg_5_a_call_goes_by_what_was_in_force_when_it_was_made() {
    let bounds = |seconds: f64| Overrides::new().request_timeout(seconds).max_attempts(1);
    let (_server, url) = silent();
    let client = client();
    let (sent, streamed) = RequestConfig::sync_scope(&bounds(0.2), || {
        (client.send(request(&url)), client.stream(request(&url)))
    })
    .expect("in range");
    let streamed = RequestConfig::sync_scope(&bounds(0.1), || {
        thread::scope(|threads| threads.spawn(|| streamed.outcome()).join().expect("a thread"))
    })
    .expect("in range");
    for outcome in [sent, streamed] {
        let timeout = timeout(outcome);
        assert_eq!((timeout.phase, timeout.limit), (Phase::Request, Duration::from_millis(200)));
    }
}

#[test]
fn cfg_5_a_call_begins_when_it_is_made() {
    let (_server, url) = silent();
    let scope = Scope::new(&Overrides::new().total_deadline(0.2)).expect("in range");
    let streamed = scope.in_scope(|| client().stream(request(&url)));
    // All of its time, and much more, passes before anything is asked of it.
    thread::sleep(Duration::from_secs(1));
    let timeout = timeout(streamed.outcome());
    assert_eq!((timeout.phase, timeout.limit), (Phase::Deadline, Duration::from_millis(200)));
    assert!(timeout.elapsed >= Duration::from_secs(1), "{timeout:?}");
}

#[test]
fn cfg_2_a_client_s_overrides_are_those_of_each_of_its_calls() {
    let (_server, url) = silent();
    let client =
        client().with_config(&Overrides::new().request_timeout(0.2).max_attempts(1)).expect("in range");
    let client = client.with_config(&Overrides::new().tool_timeout(1.0)).expect("in range");
    RequestConfig::sync_scope(&Overrides::new().request_timeout(60.0).max_attempts(9), || {
        assert_eq!(timeout(client.send(request(&url))).limit, Duration::from_millis(200));
        assert_eq!(client.config().config().max_attempts().get(), 1);
        assert_eq!(in_force(), 9);
    })
    .expect("in range");
}
