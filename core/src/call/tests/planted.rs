//! Each planted fault can be met: a play that comes out otherwise with it than without.

use std::panic::catch_unwind;

use http::header::InvalidHeaderName;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;

use super::play::{Play, ms};
use super::wire::{self, Answer, LAST_CHUNK, OPEN_HEAD, STREAM_HEAD, URL, chunk, event, response};
use crate::body::{Body, Feed, Ready, waker};
use crate::call::{AttemptId, CloseMode, Command, Fact, Request, Retries};
use crate::config::Overrides;
use crate::connect::Proxy;
use crate::dialect::Dialect;
use crate::machine::{Ended, Event, FailureKind, Machine, Stage, Supply};
use crate::outcome::ErrorKind;
use crate::planted::{Fault, plant};
use crate::retry::Backoff;

const CHAT: Dialect = Dialect::OpenAiChat;

/// A play that tells in words how it came out
type Told = fn() -> String;

#[test]
fn each_planted_fault_changes_how_a_play_comes_out() {
    for fault in Fault::of_calls() {
        let (play, right, wrong) = case(*fault);
        plant(None);
        assert_eq!(told(play), right, "without {fault:?}");
        plant(Some(*fault));
        assert_eq!(told(play), wrong, "with {fault:?}");
    }
    plant(None);
}

/// What the play tells, or which invariant it broke
fn told(play: Told) -> String {
    catch_unwind(play).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
        let from = message.find("INV-").unwrap_or_default();
        message[from..].split(':').next().unwrap_or_default().to_owned()
    })
}

/// A play in which the fault is met, and how it comes out without and with it
fn case(fault: Fault) -> (Told, &'static str, &'static str) {
    match fault {
        Fault::RelayResendsBroken
        | Fault::RelayOneSendTooMany
        | Fault::RelayWindowIgnored
        | Fault::RelaySilenceFromHead
        | Fault::RelayLastChunkLost
        | Fault::RelaySurplusReused
        | Fault::RelayOverTwice
        | Fault::RelayLeakOnLeaving
        | Fault::RelayRestPassedTwice
        | Fault::RelayBreakUnseen => {
            unreachable!("{fault:?} is planted in the relay's exchange")
        }
        Fault::RetryAfterDelivery => (reset_after_a_delta, "transport, 1 attempt", "INV-3"),
        Fault::OneAttemptTooMany => (
            || attempts(Overrides::new().max_attempts(2), &response("503 Busy", &[], "")),
            "status 503, 2 attempts",
            "status 503, 3 attempts",
        ),
        Fault::RawCutPasses => (
            || {
                let request = Request::post(URL).body("{}").raw().build().unwrap();
                let mut play = Play::new(request, Overrides::new()).start();
                play.request().receive("HTTP/1.1 200 OK\r\n\r\nabc").eof(Ended::WithoutCloseNotify);
                play.outcome().word().to_owned()
            },
            "error",
            "completed",
        ),
        Fault::QuotaRetried => (
            || {
                let body = json!({"error": {"code": "insufficient_quota", "message": "pay"}}).to_string();
                attempts(Overrides::new().max_attempts(2), &response("429 No", &[], &body))
            },
            "status 429, 1 attempt",
            "status 429, 2 attempts",
        ),
        Fault::ShouldRetryIgnored => (
            || {
                let answer = response("503 Busy", &["x-should-retry: false"], "");
                attempts(Overrides::new().max_attempts(2), &answer)
            },
            "status 503, 1 attempt",
            "status 503, 2 attempts",
        ),
        Fault::ResendCostsNothing => (stale_after_sending, "1 connection", "2 connections"),
        Fault::FailedTurnKept => (answer_after_an_empty_one, "id new", "id old"),
        Fault::RetryAfterIsCeiling => (
            || {
                let mut play = Play::unary(Overrides::new()).start();
                play.request().receive(response("503 Busy", &["retry-after: 7"], ""));
                format!("at least 7 s: {}", play.deadline().unwrap().0 >= ms(7_000))
            },
            "at least 7 s: true",
            "at least 7 s: false",
        ),
        Fault::BackoffOneStepAhead => (
            || {
                let mut rng = fastrand::Rng::with_seed(1);
                let longest =
                    (0..100).filter_map(|_| Backoff::default().pause(&mut rng, 1, None, None)).max();
                format!("at most 1 s: {}", longest.unwrap() <= ms(1_000))
            },
            "at most 1 s: true",
            "at most 1 s: false",
        ),
        Fault::PauseSleptPastDeadline => (
            || {
                let mut play = Play::unary(Overrides::new().total_deadline(5.0)).start();
                play.request().receive(response("429 No", &["retry-after: 60"], ""));
                play.end();
                format!("past the deadline: {}", play.ended_at() > ms(5_000))
            },
            "past the deadline: false",
            "past the deadline: true",
        ),
        Fault::AttemptStartedPastDeadline => (
            || {
                let mut play = Play::unary(Overrides::new().total_deadline(5.0)).start();
                play.request().receive(response("503 Busy", &["retry-after: 4"], ""));
                play.late(6_000).elapsed();
                format!("{} started", play.attempts_at().len())
            },
            "1 started",
            "2 started",
        ),
        Fault::AttemptOutlivesDeadline => (
            || {
                let overrides = Overrides::new().total_deadline(2.0).request_timeout(4.0);
                let mut play = Play::unary(overrides).start();
                play.request().end();
                how(&play)
            },
            "Deadline after 2s, 1 attempt",
            "Request after 4s, 1 attempt",
        ),
        Fault::DeadlineRestartedPerAttempt => (
            || {
                let mut play = Play::unary(Overrides::new().total_deadline(3.0)).start();
                play.at(2_000).request().receive(response("503 Busy", &["retry-after: 0"], "")).expire();
                play.request();
                format!("until 3 s: {}", play.deadline().unwrap().0 == ms(3_000))
            },
            "until 3 s: true",
            "until 3 s: false",
        ),
        Fault::StreamDeadlineFromHead => (
            || {
                let mut play = Play::stream(CHAT, Overrides::new().stream_deadline(1.0)).start();
                next(play.at(600).open())
            },
            "StreamDeadline at 1s",
            "StreamDeadline at 1.6s",
        ),
        Fault::TrickledHeadGainsTime => (
            || {
                let mut play = Play::stream(CHAT, Overrides::new().request_timeout(1.0)).start();
                next(play.request().at(900).receive("HTTP/1.1 "))
            },
            "Request at 1s",
            "Request at 1.9s",
        ),
        Fault::CommentsDoNotResetIdle => (
            || {
                next(
                    streaming(CHAT, Overrides::new().stream_idle_timeout(1.0))
                        .at(600)
                        .receive(chunk(": \n\n")),
                )
            },
            "StreamIdle at 1.6s",
            "StreamIdle at 1.1s",
        ),
        Fault::ElapsedFromAttemptStart => (
            || {
                let mut play = streaming(CHAT, Overrides::new().stream_idle_timeout(1.0));
                play.end();
                how(&play)
            },
            "StreamIdle after 1s, 1 attempt",
            "StreamIdle after 1.1s, 1 attempt",
        ),
        Fault::IdleRunsUnderBackpressure => (
            || {
                let mut play = streaming(CHAT, Overrides::new().stream_idle_timeout(1.0)).slow();
                next(play.at(200).receive(chunk(CHAT.text("Hi"))))
            },
            "nothing",
            "StreamIdle at 1.2s",
        ),
        Fault::IdleNotRestartedOnReturn => (
            || {
                let mut play = streaming(CHAT, Overrides::new().stream_idle_timeout(1.0)).slow();
                next(play.at(200).receive(chunk(CHAT.text("Hi"))).at(5_000).taken())
            },
            "StreamIdle at 6s",
            "StreamIdle at 1.2s",
        ),
        Fault::PingsExtendContent => (
            || {
                let dialect = Dialect::Anthropic;
                let mut play = streaming(dialect, Overrides::new().content_idle_timeout(1.0));
                play.at(200).receive(chunk(dialect.opening() + &dialect.text("Hi")));
                next(play.at(600).receive(chunk(dialect.ping())))
            },
            "ContentIdle at 1.2s",
            "ContentIdle at 1.6s",
        ),
        Fault::CommentsExtendAfterMarker => {
            (|| next(marked().at(600).receive(chunk(": \n\n"))), "AfterMarker at 2.2s", "AfterMarker at 2.6s")
        }
        Fault::ResetForgetsTerminalState => {
            (|| how(marked().reset()), "Completed \"Hi\", 1 attempt", "transport, 1 attempt")
        }
        Fault::ErrorAfterMarkerIgnored => (
            || how(marked().receive(chunk(CHAT.overload()))),
            "in band, 1 attempt",
            "Completed \"Hi\", 1 attempt",
        ),
        Fault::IncompletePassesForCompleted => (
            || {
                let cut = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]});
                let body = CHAT.text("Hi") + &event(&cut) + "data: [DONE]\n\n";
                how(streaming(CHAT, Overrides::new()).receive(chunk(body)))
            },
            "Incomplete(\"length\") \"Hi\", 1 attempt",
            "Completed \"Hi\", 1 attempt",
        ),
        Fault::TailLost => (
            || {
                let dialect = Dialect::OpenAiResponses;
                let body = dialect.opening() + &dialect.text("Hi") + dialect.terminal().trim_end();
                delimited_by_fin(dialect, &body)
            },
            "Completed \"Hi\", 1 attempt",
            "truncated, 1 attempt",
        ),
        Fault::PartialEventDispatched => (
            || delimited_by_fin(CHAT, &(CHAT.text("Hi") + "data: {\"choices\":[")),
            "truncated, 1 attempt",
            "protocol, 1 attempt",
        ),
        Fault::DeltaLostOnDrop => (
            || {
                let both = json!({"choices": [{"index": 0, "delta": {"reasoning": "Hm", "content": "Hi"}}]});
                let body = event(&both) + &CHAT.terminal() + "data: [DONE]\n\n";
                how(streaming(CHAT, Overrides::new()).interrupted(|_| true).receive(chunk(body)))
            },
            "Completed \"Hi\", 1 attempt",
            "Completed \"\", 1 attempt",
        ),
        Fault::StatusLostWithItsBody => (
            || {
                let mut play = Play::unary(Overrides::new().max_attempts(1)).start();
                play.request().receive("HTTP/1.1 429 No\r\ncontent-length: 9\r\n\r\npart").reset();
                how(&play)
            },
            "status 429, 1 attempt",
            "transport, 1 attempt",
        ),
        Fault::FailedWriteHidesAnswer => (
            || {
                let mut play = Play::unary(Overrides::new().max_attempts(1)).start();
                play.connected().sent(1).fail(Stage::Write, FailureKind::Reset, "broken pipe");
                if play.record.done.is_none() {
                    play.receive(response("413 Too Large", &[], ""));
                }
                how(&play)
            },
            "status 413, 1 attempt",
            "transport, 1 attempt",
        ),
        Fault::BodyNotCapped => (
            || {
                let mut play = Play::unary(Overrides::new().max_body_bytes(10)).start();
                play.request().receive(response("200 OK", &[], "eleven char"));
                how(&play)
            },
            "protocol, 1 attempt",
            "Completed \"\", 1 attempt",
        ),
        Fault::ReasoningNotCounted => (
            || {
                let thought = json!({"choices": [{"index": 0, "delta": {"reasoning": "so so"}}]});
                let mut play = streaming(CHAT, Overrides::new().max_body_bytes(4));
                play.receive(chunk(event(&thought)));
                if play.record.done.is_none() { "read on".to_owned() } else { how(&play) }
            },
            "protocol, 1 attempt",
            "read on",
        ),
        Fault::SentNotBilled => (
            || {
                let mut play = Play::unary(Overrides::new().max_attempts(1)).start();
                play.request().reset();
                format!("{:?}", play.outcome().result.as_ref().unwrap_err().billing)
            },
            "MaybeBilled",
            "NotSent",
        ),
        Fault::SecondDone => (
            || {
                let mut play = streaming(CHAT, Overrides::new());
                play.receive(chunk(CHAT.text("Hi") + &CHAT.terminal() + "data: [DONE]\n\n"));
                how(play.cancel())
            },
            "Completed \"Hi\", 1 attempt",
            "INV-2",
        ),
        Fault::LeakOnCancelInConnect => {
            (|| how(Play::unary(Overrides::new()).start().cancel()), "Cancelled, 1 attempt", "INV-10")
        }
        Fault::KeptUnfinished => (
            || {
                let body = CHAT.text("Hi") + &CHAT.terminal() + "data: [DONE]\n\n";
                kept(streaming(CHAT, Overrides::new()).receive(chunk(body)))
            },
            "kept: false",
            "kept: true",
        ),
        Fault::PauseDrawnFromAddress => (
            || {
                let mut plays = [(); 2].map(|()| Play::unary(Overrides::new()).start());
                for play in &mut plays {
                    play.request().receive(response("503 Busy", &[], ""));
                }
                format!("the same pause: {}", next(&plays[0]) == next(&plays[1]))
            },
            "the same pause: true",
            "the same pause: false",
        ),
        Fault::ExpiryOnlyAfterDeadline => (
            || {
                let mut play = streaming(CHAT, Overrides::new().stream_idle_timeout(2.0));
                play.end();
                how(&play)
            },
            "StreamIdle after 2s, 1 attempt",
            "the progress law",
        ),
        Fault::LastGapForLargest => (
            || {
                let mut play = streaming(CHAT, Overrides::new());
                play.at(900).receive(chunk(": \n\n")).at(1_000).receive(chunk(": \n\n")).cancel();
                format!("{:?}", play.outcome().timeline.attempts[0].largest_gap)
            },
            "800ms",
            "100ms",
        ),
        Fault::LateEventRefused => (
            || {
                let mut play = Play::unary(Overrides::new()).start();
                play.request().receive(response("503 Busy", &[], ""));
                format!("{:?}", play.try_feed(Event::Eof(play.link(), Ended::Clean)))
            },
            "Ok(())",
            "Err(UnknownLink)",
        ),
        Fault::RefusedRetrySent => (
            || {
                let mut play = Play::with_budget(Overrides::new()).start();
                play.request().receive(response("503 Busy", &[], ""));
                format!("{:?}", play.fact(Fact::RetryRefused(play.link())).call.state())
            },
            "Over",
            "Pausing",
        ),
        Fault::FieldsOfEarlierAttemptKept => (
            || {
                let source = |_: &Request, attempt: AttemptId| {
                    let name = HeaderName::try_from(format!("x-of-{}", attempt.number()))?;
                    Ok::<_, InvalidHeaderName>(HeaderMap::from_iter([(name, HeaderValue::from_static("1"))]))
                };
                let request = Request::post(URL).attempt_headers(source).build().unwrap();
                let mut play = Play::new(request, Overrides::new()).start();
                let mut feed = Feed::default();
                play.connected()
                    .made_by(&mut feed)
                    .sent_all()
                    .reset()
                    .expire()
                    .connected()
                    .made_by(&mut feed);
                let outgoing = String::from_utf8(play.call.outgoing(play.link()).concat()).unwrap();
                format!("of 1: {}, of 2: {}", outgoing.contains("x-of-1"), outgoing.contains("x-of-2"))
            },
            "of 1: false, of 2: true",
            "of 1: true, of 2: true",
        ),
        Fault::ProxyTakenForServer => (
            || {
                let request = Request::post("http://h/v1").body("{}").build().unwrap();
                let request = request.forwarded_by(&Proxy::new("p:3128").unwrap());
                let mut play = Play::new(request, Overrides::new()).start();
                play.request().receive(response("407 Who", &[], "")).error().name().to_owned()
            },
            "proxy",
            "status",
        ),
        Fault::OnceReadAgain => (
            || {
                let mut play = streamed(Body::once(Ready(std::io::empty())));
                play.feed(Event::Supplied(play.link(), Supply::End)).sent_all();
                format!("{:?}", play.receive(response("503 Busy", &[], "")).call.state())
            },
            "Over",
            "Pausing",
        ),
        Fault::WindowWithoutEnd => (
            || {
                let mut play = streamed(Body::source(|| Ok(Ready(std::io::empty()))));
                play.feed(Event::Supplied(play.link(), Supply::Bytes(&[0; 40_000])));
                let wanted = play.record.wait.as_ref().and_then(|wait| wait.io).map(|io| io.supply);
                format!("{wanted:?} more")
            },
            "Some(0) more",
            "Some(65536) more",
        ),
        Fault::KeptHalfSent => (
            || {
                let mut play = streamed(Body::source(|| Ok(Ready(std::io::empty()))));
                kept(play.receive(response("200 OK", &[], "early")))
            },
            "kept: false",
            "kept: true",
        ),
        Fault::KeptWithSurplus => (
            || {
                let mut play = Play::unary(Overrides::new()).start();
                kept(play.request().receive(response("200 OK", &[], "fine") + "HTTP/1.1 408"))
            },
            "kept: false",
            "kept: true",
        ),
    }
}

impl Play {
    /// The header fields of the attempt are made
    fn made_by(&mut self, feed: &mut Feed) -> &mut Self {
        let mut buffer = [0; 1];
        let supply = feed.supply(&self.call.request().clone(), self.link(), &waker(|| {}), &mut buffer);
        self.feed(Event::Supplied(self.link(), supply.expect("they are there at once")))
    }
}

/// A call whose body is read as it goes out, and whose head is out
fn streamed(body: Body) -> Play {
    let mut play = Play::new(Request::post(wire::URL).body(body).build().unwrap(), Overrides::new()).start();
    play.request();
    play
}

fn reset_after_a_delta() -> String {
    let mut play = streaming(CHAT, Overrides::new());
    play.receive(chunk(CHAT.text("Hi"))).reset();
    play.end();
    how(&play)
}

fn stale_after_sending() -> String {
    let request = Request::post(wire::URL).retries(Retries::Never).build().unwrap();
    let mut play = Play::new(request, Overrides::new()).start();
    play.reused().sent_all().fin();
    counted(play.record.opened().len(), "connection")
}

fn answer_after_an_empty_one() -> String {
    let mut play = streaming(CHAT, Overrides::new());
    play.receive(chunk(event(&json!({"id": "old", "choices": []}))) + LAST_CHUNK).expire();
    let new =
        json!({"id": "new", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]});
    play.open().receive(chunk(event(&new) + "data: [DONE]\n\n"));
    format!("id {}", play.completion().turn.id.as_deref().unwrap_or_default())
}

/// A call that is answered so until it is over
fn attempts(overrides: Overrides, answer: &str) -> String {
    let mut play = Play::unary(overrides).start();
    play.request().receive(answer);
    for _ in 0..5 {
        if play.record.done.is_none() {
            play.expire().request().receive(answer);
        }
    }
    how(&play)
}

/// A stream whose head came at 100 ms
fn streaming(dialect: Dialect, overrides: Overrides) -> Play {
    let mut play = Play::stream(dialect, overrides).start();
    play.at(100).request().receive(STREAM_HEAD);
    play
}

/// A stream whose marker came at 200 ms
fn marked() -> Play {
    let mut play = streaming(CHAT, Overrides::new());
    play.at(200).receive(chunk(CHAT.text("Hi") + &CHAT.terminal()));
    play
}

fn delimited_by_fin(dialect: Dialect, body: &str) -> String {
    let mut play = Play::stream(dialect, Overrides::new()).start();
    play.at(100).request().receive(OPEN_HEAD).receive(body).fin();
    how(&play)
}

/// How a call ended, and after how many attempts
fn how(play: &Play) -> String {
    let ended = match &play.outcome().result {
        Ok(completion) => format!("{:?} {:?}", completion.ending, completion.turn.text()),
        Err(error) => match &error.kind {
            ErrorKind::Timeout(timeout) => format!("{:?} after {:?}", timeout.phase, timeout.elapsed),
            ErrorKind::Status(error) => format!("status {}", error.status.as_u16()),
            ErrorKind::InBand(_) => "in band".to_owned(),
            ErrorKind::Truncated(_) => "truncated".to_owned(),
            ErrorKind::Transport(_) => "transport".to_owned(),
            ErrorKind::Protocol(_) => "protocol".to_owned(),
            kind => format!("{kind:?}"),
        },
    };
    format!("{ended}, {}", counted(play.attempts_at().len(), "attempt"))
}

fn counted(count: usize, of: &str) -> String {
    format!("{count} {of}{}", if count == 1 { "" } else { "s" })
}

/// The next deadline
fn next(play: &Play) -> String {
    play.deadline().map_or_else(|| "nothing".to_owned(), |(at, timer)| format!("{timer:?} at {at:?}"))
}

/// Whether the connection is left to the next call
fn kept(play: &Play) -> String {
    let last = play.record.commands.last();
    format!("kept: {}", matches!(last, Some((_, Command::Close(_, CloseMode::Keep)))))
}
