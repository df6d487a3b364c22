//! A: server-sent events and UTF-8.

use steadfast::dialect::Dialect;
use steadfast_tests::corpus::events::{D, c, f};
use steadfast_tests::corpus::{Case, End};

fn chat(body: impl AsRef<[u8]>, end: End) -> Case {
    Case::stream(Dialect::OpenAiChat).body(body, end)
}

#[test]
fn a01_a_character_cut_between_two_reads() {
    chat(c("中ok") + &f("stop") + D, End::Clean).play().assert_completed(Some("stop"), "中ok");
}

#[test]
fn a03_a_byte_that_is_never_valid_utf8() {
    let mut body = c("aXb").into_bytes();
    let at = body.iter().position(|byte| *byte == b'X').unwrap();
    body[at] = 0xFF;
    body.extend((f("stop") + D).bytes());
    chat(body, End::Clean).play().assert_completed(Some("stop"), "a\u{FFFD}b");
}

#[test]
fn a10_comment_keep_alives() {
    let body =
        format!(": OPENROUTER PROCESSING\n\n:\n\n: OPENROUTER PROCESSING\n\n{}{}{D}", c("Hi"), f("stop"));
    chat(body, End::Clean).play().assert_completed(Some("stop"), "Hi").assert_requests(1);
}
