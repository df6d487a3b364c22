//! Turns of a conversation on a thread.

use serde_json::json;
use steadfast_blocking::{Client, Conversation, Format, Proxies, Request};
use steadfast_mock::Mock;
use steadfast_scenario::Script;

const SCRIPT: &str = r#"
name = "x"
about = "two answers, then none"
[bytes]
start = """event: message_start\ndata: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":7,"output_tokens":1}}}\n\n"""
block = """event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n"""
hi = """event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}\n\n"""
end = """event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}\n\n"""
stop = """event: message_stop\ndata: {"type":"message_stop"}\n\n"""
[[connection]]
times = 2
steps = [{ read = "request" }, { head = ["200 OK", "content-type: text/event-stream"] }, { send = ["$start", "$block", "$hi", "$end", "$stop"] }, "close"]
[[connection]]
steps = [{ read = "request" }, { head = ["200 OK", "content-type: text/event-stream"] }, { send = ["$start", "$block", "$hi"] }, "close"]
"#;

#[test]
fn turns_are_kept_once_they_are_over_and_only_where_they_succeed() {
    let mock = Mock::start(&Script::parse(SCRIPT).expect("a valid script"), None).expect("it starts");
    let endpoint =
        Request::post(&format!("{}/v1/messages", mock.base_url())).header("x-api-key", "sk-secret");
    let mut conversation =
        Conversation::new(Format::Anthropic, endpoint, "m-1").system("Be brief.").field("max_tokens", 9);
    let client = Client::new().with_proxies(Proxies::none());

    let mut turn = client.chat(&mut conversation, "Hello").expect("a valid request");
    let text: String = turn.by_ref().map(|piece| piece.text().to_owned()).collect();
    assert_eq!((text.as_str(), turn.cost().tokens.total()), ("Hi", 9));
    drop(turn);
    let outcome = client.chat(&mut conversation, "And?").expect("a valid request").outcome();
    assert_eq!((outcome.word(), conversation.messages().len()), ("completed", 4));
    let outcome = client.chat(&mut conversation, "And?").expect("a valid request").outcome();
    assert_eq!((outcome.word(), conversation.messages().len()), ("error", 4));
    assert_eq!((conversation.cost().calls, conversation.cost().tokens.total()), (2, 18));
    assert_eq!(
        conversation.messages()[1],
        json!({"role": "assistant", "content": [{"type": "text", "text": "Hi"}]})
    );
    assert!(!format!("{conversation:?}").contains("sk-secret"));
}
