//! Every way to run a call: flavours of the runtime, spawned, selected, paused, as a plain `Stream`.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt};
use steadfast::call::Item;
use steadfast::outcome::{Delta, ErrorKind, Phase};
use steadfast_mock::Mock;
use steadfast_tokio::{CallStream, Client, Overrides, Piece};
use tokio::task::JoinSet;

use crate::peer::Server;
use crate::requests::{
    client_of, current_thread, mock, multi_thread, once, stream_from, unary_from, within_cap,
};

const ANSWER: &str = "aé日 with a \\\"quote\\\"";
const TEXT: &str = "aé日 with a \"quote\"";

fn answering() -> Mock {
    let bytes = format!(
        r#"
        hi = '''data: {{"choices":[{{"index":0,"delta":{{"content":"{ANSWER}"}},"finish_reason":null}}]}}'''
        end = """data: {{"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"}}]}}\n\ndata: [DONE]\n\n"""
    "#
    );
    let steps = r#"{ read = "request" }, { head = ["200 OK", "content-type: text/event-stream"] },
        { repeat = { times = 10, steps = [{ send = "$hi\n\n" }] } }, { send = "$end" }, "await-close""#;
    mock("", &bytes, &[steps])
}

fn text_of(pieces: &[Piece]) -> String {
    pieces.iter().map(Piece::text).collect()
}

#[test]
fn calls_run_spawned_on_either_flavour() {
    fn assert_send<T: Send + 'static>(value: T) -> T {
        value
    }
    for runtime in [current_thread(), multi_thread(1), multi_thread(4)] {
        let mock = answering();
        let texts = runtime.block_on(within_cap(async {
            let client = client_of(&mock);
            let mut calls = JoinSet::new();
            for _ in 0..20 {
                let stream = assert_send(client.stream(stream_from(&mock.base_url(), Overrides::new())));
                calls.spawn(async move {
                    stream.outcome().await.result.map(|completion| completion.turn.text().len())
                });
            }
            calls.join_all().await
        }));
        assert_eq!(texts.len(), 20);
        for text in texts {
            assert_eq!(text.expect("a success"), 10 * TEXT.len());
        }
    }
}

#[test]
fn it_is_a_stream_for_any_combinator() {
    let mock = answering();
    let pieces: Vec<Piece> = current_thread().block_on(within_cap(async {
        let stream = client_of(&mock).stream(stream_from(&mock.base_url(), Overrides::new()));
        stream.filter(|piece| std::future::ready(!piece.text().is_empty())).take(4).collect().await
    }));
    assert_eq!(text_of(&pieces), TEXT.repeat(4));
}

#[test]
fn it_lends_what_it_delivers() {
    let mock = answering();
    let (sum, calls) = current_thread().block_on(within_cap(async {
        let mut stream = client_of(&mock).stream(stream_from(&mock.base_url(), Overrides::new()));
        let (mut sum, mut calls) = (0, 0);
        let mut take = |item: Item<'_>| match item {
            Item::Delta(Delta::Text { text, .. }) => sum += text.len(),
            _ => calls += 1,
        };
        while stream.next_with(&mut take).await.is_some() {}
        (sum, calls)
    }));
    assert_eq!((sum, calls), (10 * TEXT.len(), 1));
}

#[test]
fn it_can_be_one_branch_of_a_select() {
    let mock = answering();
    let text = current_thread().block_on(within_cap(async {
        let mut stream = client_of(&mock).stream(stream_from(&mock.base_url(), Overrides::new()));
        let mut ticks = tokio::time::interval(Duration::from_micros(50));
        let mut text = String::new();
        loop {
            tokio::select! {
                piece = stream.next() => match piece {
                    Some(piece) => text.push_str(piece.text()),
                    None => return text,
                },
                _ = ticks.tick() => {}
            }
        }
    }));
    assert_eq!(text, TEXT.repeat(10));
}

#[test]
fn many_calls_at_once_on_one_task() {
    let mock = answering();
    let total: usize = current_thread().block_on(within_cap(async {
        let client = client_of(&mock);
        let streams = (0..20).map(|_| client.stream(stream_from(&mock.base_url(), Overrides::new())));
        let all = futures_util::stream::iter(streams).flatten_unordered(None);
        all.fold(0, |sum, piece| std::future::ready(sum + piece.text().len())).await
    }));
    assert_eq!(total, 20 * 10 * TEXT.len());
}

/// A consumer for whom something is always ready leaves room for its neighbours
#[test]
fn a_neighbour_makes_progress_beside_a_flood() {
    let bytes =
        r#"hi = """data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n""""#;
    let steps = r#"{ read = "request" }, { head = ["200 OK", "content-type: text/event-stream"] },
        { repeat = { times = "forever", steps = [{ send = { repeat = "$hi", times = 500 } }] } }"#;
    let mock = mock("", bytes, &[steps]);
    let turns = Arc::new(AtomicUsize::new(0));
    current_thread().block_on(within_cap(async {
        let neighbour = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move {
                loop {
                    turns.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            }
        });
        let mut stream = client_of(&mock).stream(stream_from(&mock.base_url(), Overrides::new()));
        assert!(stream.next().await.is_some());
        let before = turns.load(Ordering::Relaxed);
        for _ in 0..200_000 {
            assert!(stream.next().await.is_some());
        }
        assert!(turns.load(Ordering::Relaxed) > before, "the neighbour stood still");
        neighbour.abort();
    }));
}

/// A task whose budget is used up finds its call late, not dead: the bound is compared with the clock,
/// and the look at the socket is made outside of the budget
#[test]
fn a_used_up_budget_is_no_silence() {
    let server = Server::start();
    current_thread().block_on(within_cap(async {
        let overrides = once().stream_idle_timeout(0.15);
        let mut stream = Client::new().stream(stream_from(&server.url(), overrides));
        assert!(crate::requests::poll_once(&mut stream).await.is_pending());
        let mut peer = server.accept();
        peer.write(crate::requests::HEAD.to_owned() + &crate::requests::text("a"));
        assert_eq!(crate::requests::next_text(&mut stream).await, "a");
        let mut written = false;
        let piece = poll_fn(|cx| {
            while tokio::task::coop::has_budget_remaining() {
                let mut consume = std::pin::pin!(tokio::task::coop::consume_budget());
                let _ = consume.as_mut().poll(cx);
            }
            let polled = Pin::new(&mut stream).poll_next(cx);
            if !written {
                written = true;
                peer.write(crate::requests::text("b"));
                std::thread::sleep(Duration::from_millis(200));
            }
            polled
        });
        assert_eq!(piece.await.expect("a piece").text(), "b");
    }));
}

/// tokio's clock jumps to the next deadline when nothing else is to be done, so a call's bounds pass in
/// no time: of use against a server that is mute, and only there, since the clock does not wait for
/// bytes that are on their way
#[tokio::test(start_paused = true)]
async fn a_paused_clock_reaches_the_bound_at_once() {
    let mock = mock("", "", &[r#"{ read = "request" }, "await-close""#]);
    let began = Instant::now();
    let overrides = once().connect_timeout(f64::INFINITY).request_timeout(600.0);
    let error =
        client_of(&mock).send(unary_from(&mock.base_url(), overrides, 0)).await.result.expect_err("a breach");
    let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
    assert_eq!((timeout.phase, timeout.limit), (Phase::Request, Duration::from_secs(600)));
    // tokio's timers have a resolution of a millisecond.
    assert!(timeout.elapsed - timeout.limit <= Duration::from_millis(1), "{timeout}");
    assert!(began.elapsed() < crate::peer::CAP);
}

/// A call is polled by one task and then by another
#[test]
fn it_moves_between_tasks() {
    let mock = answering();
    let text = multi_thread(2).block_on(within_cap(async {
        let mut stream = client_of(&mock).stream(stream_from(&mock.base_url(), Overrides::new()));
        let mut text = String::new();
        loop {
            let step = |mut stream: CallStream| async move {
                let piece = stream.next().await;
                (stream, piece)
            };
            let piece;
            (stream, piece) = tokio::spawn(step(stream)).await.expect("no panic");
            match piece {
                Some(piece) => text.push_str(piece.text()),
                None => return text,
            }
        }
    }));
    assert_eq!(text, TEXT.repeat(10));
}
