//! The configuration in force, on every flavour of the runtime: scopes, spawned tasks, calls.

#![allow(clippy::wildcard_enum_match_arm, reason = "whatever else comes fails the test")]

use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;
use steadfast_tokio::{
    Client, Dialect, ErrorKind, Field, Outcome, Overrides, Phase, Proxies, Request, RequestConfig, Scope,
    Timeout, spawn, spawn_blocking,
};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, yield_now};

fn runtimes() -> [Runtime; 3] {
    let multi_thread = |workers| {
        Builder::new_multi_thread().worker_threads(workers).enable_all().build().expect("a runtime")
    };
    [current_thread(), multi_thread(1), multi_thread(4)]
}

/// No wait of these tests is meant to take so long
const CAP: Duration = Duration::from_secs(30);

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

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
fn cfg_3_spawned_tasks_and_threads_are_in_the_scope_of_whoever_spawns_them() {
    for runtime in runtimes() {
        let scoped = RequestConfig::scope(&attempts(7), async {
            let task = spawn(async {
                yield_now().await;
                (in_force(), spawn(async { in_force() }).await.expect("a task"))
            });
            assert_eq!(task.await.expect("a task"), (7, 7));
            assert_eq!(spawn_blocking(in_force).await.expect("a thread"), 7);
            let mut set = JoinSet::new();
            set.spawn(Scope::current().wrap(async { in_force() }));
            assert_eq!(set.join_all().await, [7]);
            let inner = RequestConfig::sync_scope(&attempts(8), || spawn(async { in_force() }));
            assert_eq!(inner.expect("in range").await.expect("a task"), 8);
            assert_eq!(tokio::spawn(async { in_force() }).await.expect("a task"), 3, "tokio's own");
        });
        runtime.block_on(scoped.expect("in range"));
        assert_eq!(runtime.block_on(async { spawn(async { in_force() }).await.expect("a task") }), 3);
    }
}

#[test]
fn cfg_3_tasks_interleaved_on_the_same_threads_see_nothing_of_each_other() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let look = |expected: u32| async move {
                for _ in 0..100 {
                    assert_eq!(in_force(), expected);
                    yield_now().await;
                }
            };
            let mut set = JoinSet::new();
            for count in 10..60 {
                set.spawn(RequestConfig::scope(&attempts(count), look(count)).expect("in range"));
                set.spawn(look(3));
            }
            while let Some(task) = set.join_next().await {
                task.expect("it saw its own");
            }
        });
    }
}

#[test]
fn cfg_3_a_scope_survives_a_changed_default() {
    let tool_timeout = || RequestConfig::current().config().get(Field::ToolTimeout);
    let default = |seconds: f64| {
        RequestConfig::set_default_overrides(&Overrides::new().tool_timeout(seconds)).expect("in range");
    };
    for runtime in runtimes() {
        default(5.0);
        let (sender, changed) = tokio::sync::oneshot::channel();
        let scoped = RequestConfig::scope(&attempts(7), async move {
            let before = spawn(async move {
                let before = tool_timeout();
                changed.await.expect("a change");
                (before, tool_timeout(), in_force())
            });
            before.await.expect("a task")
        });
        let task = runtime.spawn(scoped.expect("in range"));
        default(6.0);
        sender.send(()).expect("a task that waits");
        assert_eq!(runtime.block_on(task).expect("a task"), ("5".to_owned(), "5".to_owned(), 7));
        assert_eq!(tool_timeout(), "6");
    }
}

#[test]
fn cfg_3_an_aborted_task_is_dropped_inside_and_a_panicking_one_leaves_nothing() {
    struct Dropped(mpsc::Sender<u32>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            _ = self.0.send(in_force());
        }
    }
    for runtime in runtimes() {
        let (sender, seen) = mpsc::channel();
        runtime.block_on(async {
            let dropped = Dropped(sender.clone());
            let waiting = async move {
                let _dropped = dropped;
                std::future::pending::<()>().await;
            };
            let task = tokio::spawn(RequestConfig::scope(&attempts(7), waiting).expect("in range"));
            yield_now().await;
            task.abort();
            assert!(task.await.expect_err("it was aborted").is_cancelled());

            let dropped = Dropped(sender);
            let panicking = async move {
                let _dropped = dropped;
                yield_now().await;
                panic!("as it should");
            };
            let task = tokio::spawn(RequestConfig::scope(&attempts(8), panicking).expect("in range"));
            assert!(task.await.expect_err("it panicked").is_panic());
            for _ in 0..8 {
                assert_eq!(tokio::spawn(async { in_force() }).await.expect("a task"), 3);
            }
        });
        assert_eq!(seen.iter().collect::<Vec<_>>(), [7, 8]);
    }
}

#[test]
fn cfg_5_a_call_goes_by_what_was_in_force_when_it_was_made() {
    let bounds = |seconds: f64| Overrides::new().request_timeout(seconds).max_attempts(1);
    for runtime in runtimes() {
        let (_server, url) = silent();
        let client = client();
        let (sent, streamed) = RequestConfig::sync_scope(&bounds(0.2), || {
            (client.send(request(&url)), client.stream(request(&url)))
        })
        .expect("in range");
        // A first poll in another scope, and one in none.
        let sent = RequestConfig::scope(&bounds(0.1), sent).expect("in range");
        let (sent, streamed) = runtime.block_on(async {
            let sent = tokio::spawn(tokio::time::timeout(CAP, sent));
            let sent = sent.await.expect("a task").expect("an end in time");
            (sent, tokio::time::timeout(CAP, streamed.outcome()).await.expect("an end in time"))
        });
        for outcome in [sent, streamed] {
            let timeout = timeout(outcome);
            assert_eq!((timeout.phase, timeout.limit), (Phase::Request, Duration::from_millis(200)));
        }
    }
}

#[test]
fn cfg_5_a_call_begins_when_it_is_made() {
    let (_server, url) = silent();
    current_thread().block_on(async {
        tokio::time::pause();
        let scope = Scope::new(&Overrides::new().total_deadline(1.0)).expect("in range");
        let client = client();
        let (sent, streamed) = scope.in_scope(|| (client.send(request(&url)), client.stream(request(&url))));
        tokio::time::advance(Duration::from_secs(5)).await;
        for outcome in [sent.await, streamed.outcome().await] {
            let timeout = timeout(outcome);
            assert_eq!((timeout.phase, timeout.limit), (Phase::Deadline, Duration::from_secs(1)));
            assert!(timeout.elapsed >= Duration::from_secs(5), "{timeout:?}");
        }
    });
}

#[test]
fn cfg_2_a_client_s_overrides_are_those_of_each_of_its_calls() {
    let (_server, url) = silent();
    let client =
        client().with_config(&Overrides::new().request_timeout(0.2).max_attempts(1)).expect("in range");
    let client = client.with_config(&Overrides::new().tool_timeout(1.0)).expect("in range");
    let scope = Scope::new(&Overrides::new().request_timeout(60.0).max_attempts(9)).expect("in range");
    current_thread().block_on(scope.wrap(async {
        assert_eq!(timeout(client.send(request(&url)).await).limit, Duration::from_millis(200));
        let own = Request::post(&url).json(&json!({})).overrides(Overrides::new().request_timeout(0.1));
        let own = client.send(own.build().expect("a valid request")).await;
        assert_eq!(timeout(own).limit, Duration::from_millis(100));
        assert_eq!(client.config().config().max_attempts().get(), 1);
        assert_eq!(in_force(), 9);
    }));
}
