//! The configuration in force on smol: scopes, spawned tasks, calls.

#![allow(clippy::wildcard_enum_match_arm, reason = "whatever else comes fails the test")]

use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;
use smol::future::yield_now;
use smol::{Executor, LocalExecutor, Timer, block_on};
use steadfast_smol::{
    Client, Dialect, ErrorKind, Field, Outcome, Overrides, Phase, Proxies, Request, RequestConfig, Scope,
    Timeout, spawn, spawn_on, unblock,
};

/// No wait of these tests is meant to take so long
const CAP: Duration = Duration::from_secs(30);

fn run<T>(future: impl Future<Output = T>) -> T {
    block_on(smol::future::or(future, async {
        Timer::after(CAP).await;
        panic!("no end in time")
    }))
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
    let executor = Executor::new();
    let local = LocalExecutor::new();
    let scoped = RequestConfig::scope(&attempts(7), async {
        assert_eq!(spawn(async { (in_force(), spawn(async { in_force() }).await) }).await, (7, 7));
        assert_eq!(unblock(in_force).await, 7);
        let look = async {
            yield_now().await;
            in_force()
        };
        assert_eq!(executor.run(spawn_on(&executor, look)).await, 7);
        assert_eq!(local.run(local.spawn(Scope::current().wrap(async { in_force() }))).await, 7);
        assert_eq!(smol::spawn(async { in_force() }).await, 3, "smol's own");
    });
    block_on(scoped.expect("in range"));
    assert_eq!(block_on(spawn(async { in_force() })), 3);
}

#[test]
fn cfg_3_tasks_interleaved_on_the_same_threads_see_nothing_of_each_other() {
    async fn look(expected: u32) {
        for _ in 0..100 {
            assert_eq!(in_force(), expected);
            yield_now().await;
        }
    }
    let executor = Executor::new();
    let tasks: Vec<_> = (10..60)
        .flat_map(|count| {
            let scoped = || RequestConfig::scope(&attempts(count), look(count)).expect("in range");
            [executor.spawn(scoped()), executor.spawn(look(3)), spawn(scoped())]
        })
        .collect();
    block_on(executor.run(async {
        for task in tasks {
            task.await;
        }
    }));
}

#[test]
fn cfg_3_a_scope_survives_a_changed_default() {
    let tool_timeout = || RequestConfig::current().config().get(Field::ToolTimeout);
    let default = |seconds: f64| {
        RequestConfig::set_default_overrides(&Overrides::new().tool_timeout(seconds)).expect("in range");
    };
    default(5.0);
    let (sender, changed) = smol::channel::bounded(1);
    let scope = Scope::new(&attempts(7)).expect("in range");
    let task = scope.in_scope(|| {
        spawn(async move {
            let before = tool_timeout();
            changed.recv().await.expect("a change");
            (before, tool_timeout(), in_force())
        })
    });
    default(6.0);
    sender.try_send(()).expect("room");
    assert_eq!(block_on(task), ("5".to_owned(), "5".to_owned(), 7));
    assert_eq!(tool_timeout(), "6");
}

#[test]
fn cfg_3_a_cancelled_task_is_dropped_inside_its_scope() {
    struct Dropped(mpsc::Sender<u32>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            _ = self.0.send(in_force());
        }
    }
    let (sender, seen) = mpsc::channel();
    let dropped = Dropped(sender);
    let waiting = async move {
        let _dropped = dropped;
        std::future::pending::<()>().await;
    };
    let executor = Executor::new();
    let task = executor.spawn(RequestConfig::scope(&attempts(7), waiting).expect("in range"));
    assert!(executor.try_tick());
    block_on(executor.run(task.cancel()));
    assert_eq!(seen.iter().collect::<Vec<_>>(), [7]);
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
    // A first poll in another scope, and one in none.
    let sent = smol::spawn(RequestConfig::scope(&bounds(0.1), sent).expect("in range"));
    for outcome in run(async { [sent.await, streamed.outcome().await] }) {
        let timeout = timeout(outcome);
        assert_eq!((timeout.phase, timeout.limit), (Phase::Request, Duration::from_millis(200)));
    }
}

#[test]
fn cfg_5_a_call_begins_when_it_is_made() {
    let (_server, url) = silent();
    let scope = Scope::new(&Overrides::new().total_deadline(0.2)).expect("in range");
    let client = client();
    let (sent, streamed) = scope.in_scope(|| (client.send(request(&url)), client.stream(request(&url))));
    run(async {
        // All of its time, and much more, passes before it is polled.
        Timer::after(Duration::from_secs(1)).await;
        for outcome in [sent.await, streamed.outcome().await] {
            let timeout = timeout(outcome);
            assert_eq!((timeout.phase, timeout.limit), (Phase::Deadline, Duration::from_millis(200)));
            assert!(timeout.elapsed >= Duration::from_secs(1), "{timeout:?}");
        }
    });
}
