//! Framings and content codings through the whole call.

use std::io::Write;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use steadfast::content::ContentError;
use steadfast::dialect::Dialect;
use steadfast::outcome::{Billing, ErrorKind, Note, ProtocolError};
use steadfast_tests::corpus::events::{D, c, f, g, gf};
use steadfast_tests::corpus::{Answer, Case, End, Ran};

const NDJSON: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n";
const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

fn encoded(coding: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: {coding}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
}

fn line(text: &str, rest: &str) -> String {
    format!("{{\"model\":\"m\",\"message\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},{rest}}}")
}

#[test]
fn ndjson_streams() {
    let body = format!(
        "{}\n{}\r\n\n",
        line("Hel", "\"done\":false"),
        line("lo", "\"done\":true,\"done_reason\":\"stop\"")
    );
    for end in [End::Clean, End::Open, End::Cut, End::Reset] {
        let answer = Answer::raw(NDJSON).chunked().send(&body).end(end);
        Case::stream(Dialect::Ollama)
            .answer(answer)
            .play()
            .assert_completed(Some("stop"), "Hello")
            .assert_requests(1);
    }
}

#[test]
fn a_last_line_that_is_whole_and_ends_the_turn_counts_after_a_cut() {
    let whole = line("Hel", "\"done\":false") + "\n" + &line("lo", "\"done\":true,\"done_reason\":\"stop\"");
    for end in [End::Cut, End::Reset] {
        let answer = Answer::raw(NDJSON).chunked().send(&whole).end(end);
        let ran = Case::stream(Dialect::Ollama).answer(answer).play();
        ran.assert_completed(Some("stop"), "Hello");
        assert!(ran.noted(Note::TailTaken) && ran.noted(Note::UncleanEnd));
    }
    // Whole, but not the last: more may have been lost.
    let open = line("Hel", "\"done\":false") + "\n" + &line("lo", "\"done\":false");
    let answer = Answer::raw(NDJSON).chunked().send(&open).end(End::Cut);
    Case::stream(Dialect::Ollama).answer(answer).play().assert_failed("truncated", "Hel");
}

#[test]
fn a_json_array_streams() {
    let body = "[{\n  \"candidates\": [{\"index\":0,\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"H}],{\\\"i\"}]}}]\n}\n,\r\n{\"candidates\":[{\"index\":0,\"finishReason\":\"STOP\"}]}\n]";
    let answer = Answer::raw(JSON).chunked().send(body).end(End::Clean);
    Case::stream(Dialect::Gemini).answer(answer).play().assert_completed(Some("STOP"), "H}],{\"i");
    let broken = Answer::raw(JSON).chunked().send("[{\"candidates\":[]} {}]").end(End::Clean);
    let ran = Case::stream(Dialect::Gemini).answer(broken).play();
    assert!(matches!(ran.kind(), ErrorKind::Protocol(ProtocolError::Framing(_))), "{:?}", ran.kind());
}

fn gzip(pieces: &[String]) -> Vec<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut blocks: Vec<Vec<u8>> = pieces
        .iter()
        .map(|piece| {
            encoder.write_all(piece.as_bytes()).unwrap();
            encoder.flush().unwrap();
            std::mem::take(encoder.get_mut())
        })
        .collect();
    blocks.push(encoder.finish().unwrap());
    blocks
}

#[test]
fn a_compressed_stream_gives_each_event_when_it_was_flushed() {
    let pieces = [c("Hel"), c("lo"), f("stop"), D.to_owned()];
    let mut answer = Answer::raw(encoded("gzip")).chunked();
    for (at, block) in gzip(&pieces).iter().enumerate() {
        answer = answer.at(at as f64).send(block);
    }
    let ran = Case::stream(Dialect::OpenAiChat).answer(answer.end(End::Clean)).play();
    ran.assert_completed(Some("stop"), "Hello");
    assert_eq!(ran.played.turn_at.map(|at| at.as_nanos()), Some(2_000_000_000));
    assert_eq!(ran.seconds(), 3.0);
}

#[test]
fn a_large_compressed_stream_comes_through_its_window() {
    let text = "0123456789abcdef".repeat(8 * 1024);
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all((c(&text) + &f("stop") + D).as_bytes()).unwrap();
    let answer = Answer::raw(encoded("deflate")).chunked().send(encoder.finish().unwrap()).end(End::Clean);
    Case::stream(Dialect::OpenAiChat).answer(answer).play().assert_completed(Some("stop"), &text);
}

#[test]
fn a_compressed_body_that_is_cut_or_damaged() {
    let blocks = gzip(&[c("Hel"), c("lo")]);
    let cut = Answer::raw(encoded("gzip")).chunked().send(&blocks[0]).end(End::Clean);
    Case::stream(Dialect::OpenAiChat).answer(cut).play().assert_failed("truncated", "Hel");
    let damaged =
        Answer::raw(encoded("gzip")).chunked().send(&blocks[0]).send("garbage garbage").end(End::Clean);
    let ran = Case::stream(Dialect::OpenAiChat).answer(damaged).play();
    assert!(matches!(ran.kind(), ErrorKind::Protocol(ProtocolError::Content(_))), "{:?}", ran.kind());
    assert_eq!(ran.turn().text(), "Hel");
}

/// A body of gzip, and one of deflate in its zlib wrapper, each flushed behind `flushed`
fn codings(flushed: &str, rest: &str) -> [(&'static str, Vec<u8>, usize); 2] {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(flushed.as_bytes()).unwrap();
    zlib.flush().unwrap();
    let zlib_flushed = zlib.get_ref().len();
    zlib.write_all(rest.as_bytes()).unwrap();
    let blocks = gzip(&[flushed.to_owned(), rest.to_owned()]);
    [("gzip", blocks.concat(), blocks[0].len()), ("deflate", zlib.finish().unwrap(), zlib_flushed)]
}

/// Plays the body as two reads, for every place to cut it
fn at_every_cut(coding: &str, body: &[u8], check: impl Fn(&Ran)) {
    for cut in 0..body.len() {
        let (first, second) = body.split_at(cut);
        let pieces = [first, second].into_iter().filter(|piece| !piece.is_empty());
        let answer = Answer::raw(encoded(coding)).chunked().reads(pieces).end(End::Clean);
        check(&Case::stream(Dialect::OpenAiChat).answer(answer).play_whole());
    }
}

/// Rule STR-4: a decoding fault fails, though the turn seemed whole
#[test]
fn damage_behind_the_marker_fails_and_an_early_end_does_not() {
    for (coding, good, flushed) in codings(&(c("Hi") + &f("stop")), ": no event\n\n") {
        let last = good.len() - 1;
        let mut bad_checksum = good.clone();
        bad_checksum[last] ^= 1;
        let mut bad_block = good[..flushed].to_vec();
        // The last block, of the type that is none.
        bad_block.extend([0b111, 0, 0, 0, 0]);
        for damaged in [bad_checksum, bad_block] {
            at_every_cut(coding, &damaged, |ran| {
                let kind = ran.kind();
                assert!(
                    matches!(kind, ErrorKind::Protocol(ProtocolError::Content(ContentError::Corrupt(_)))),
                    "{coding}: {kind:?}"
                );
                ran.assert_failed("protocol", "Hi").assert_billing(Billing::Delivered).assert_requests(1);
                assert!(ran.played.turn_at.is_some());
            });
        }
        for early in [&good[..last], &good[..flushed]] {
            at_every_cut(coding, early, |ran| {
                ran.assert_completed(Some("stop"), "Hi");
                ran.assert_notes(&[Note::UncleanEnd, Note::MissingSentinel]);
            });
        }
    }
}

#[test]
fn behind_the_sentinel_no_checksum_is_read() {
    for (coding, mut body, _) in codings(&(c("Hi") + &f("stop") + D), ": no event\n\n") {
        let last = body.len() - 1;
        body[last] ^= 1;
        at_every_cut(coding, &body, |ran| {
            ran.assert_completed(Some("stop"), "Hi").assert_notes(&[]);
        });
    }
}

#[test]
fn a_compressed_unary_answer_and_a_compressed_error() {
    let body = "{\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}";
    let head = |status: &str| {
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
    };
    let whole = gzip(&[body.to_owned()]).concat();
    let answer = Answer::raw(head("200 OK")).chunked().send(&whole).end(End::Clean);
    let ran = Case::unary(Dialect::OpenAiChat).answer(answer).play();
    ran.assert_completed(Some("stop"), "Hi");
    assert_eq!(ran.completion().body, body);
    let error =
        gzip(&["{\"error\":{\"message\":\"too long\",\"type\":\"invalid_request_error\"}}".to_owned()])
            .concat();
    let answer = Answer::raw(head("400 Bad Request")).chunked().send(error).end(End::Clean);
    let ran = Case::stream(Dialect::OpenAiChat).answer(answer).play();
    let ErrorKind::Status(status) = ran.kind() else { panic!("{:?}", ran.kind()) };
    assert_eq!(status.provider.as_ref().map(|provider| provider.message.as_str()), Some("too long"));
}

#[test]
fn a_bomb_meets_the_caps() {
    let zeros = gzip(&["0".repeat(4 << 20)]).concat();
    let answer = Answer::raw(encoded("gzip")).chunked().send(zeros).end(End::Open);
    let case =
        Case::stream(Dialect::OpenAiChat).config(|config| config.max_event_bytes(64 * 1024)).answer(answer);
    let ran = case.play();
    assert_eq!(ran.kind(), &ErrorKind::Protocol(ProtocolError::EventTooLarge { limit: 64 * 1024 }));
}

#[test]
fn an_event_stream_that_is_called_json_is_one_all_the_same() {
    for blank in ["\n", "\n \r\n"] {
        let answer = Answer::raw(JSON).chunked().send(blank).send(c("Hel")).send(c("lo") + &f("stop") + D);
        let ran = Case::stream(Dialect::OpenAiChat).answer(answer.end(End::Clean)).play();
        ran.assert_completed(Some("stop"), "Hello");
        assert!(!ran.noted(Note::UnaryAnswerToStream));
    }
    // Blanks in front of its first line, in one read with it or not; a form feed is none
    let indented = Answer::raw(JSON).chunked().send(" ".to_owned() + &g("Hi")).send(gf("", "STOP"));
    let ran = Case::stream(Dialect::Gemini).answer(indented.end(End::Clean)).play();
    ran.assert_completed(Some("STOP"), "Hi");
    let fed = Answer::raw(JSON).chunked().send("\x0C".to_owned() + &g("Hi")).send(gf("", "STOP"));
    let ran = Case::stream(Dialect::Gemini).answer(fed.end(End::Clean)).play();
    assert!(matches!(ran.kind(), ErrorKind::Protocol(ProtocolError::Framing(_))), "{:?}", ran.kind());
    let comment = Answer::raw(JSON).chunked().send(": waiting\n\n").send(g("Hi")).send(gf("", "STOP"));
    let ran = Case::stream(Dialect::Gemini).answer(comment.end(End::Clean)).play();
    ran.assert_completed(Some("STOP"), "Hi");
}
