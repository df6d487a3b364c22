//! The official SDKs, unmodified, through the relay: what they get is what they get without it.

use std::process::Command;

use serde_json::Value;
use steadfast_tests::peers::path;

use super::support::Serving;

/// Plays these calls directly and through a relay, and compares what came, byte for byte
fn same_through_the_relay(script: &mut Command, calls: &[&str]) {
    let provider = Serving::start(&[]);
    let url = format!("http://{}", provider.address());
    let upstreams = ["openai", "anthropic", "gemini"].map(|name| format!("{name}={url}/{name}"));
    let arguments: Vec<&str> = upstreams.iter().flat_map(|upstream| ["--upstream", upstream]).collect();
    let relay = Serving::start(&arguments);
    let output = script.args([&url, &format!("http://{}", relay.address())]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lines = String::from_utf8(output.stdout).expect("JSON");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let made: Vec<&str> = lines.iter().filter_map(|line| line["call"].as_str()).collect();
    assert_eq!(made, calls);
    for line in &lines {
        assert_eq!(line["direct"], line["relayed"], "{line}");
        assert_eq!(line["direct"][1], 200, "{line}");
        assert!(line["direct"][0].as_str().is_some_and(|text| text.starts_with("Hello!")), "{line}");
    }
    println!("sdks: {} calls through the relay, byte for byte as without it", lines.len());
    relay.stop();
    provider.stop();
}

#[test]
fn the_official_python_sdks_get_the_same_bytes() {
    let Some(python) = path("sdks", "python/bin/python") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/peers/sdks/relayed.py");
    same_through_the_relay(
        Command::new(python).args(["-W", "ignore", script]),
        &[
            "chat",
            "chat_stream",
            "respond",
            "respond_stream",
            "messages",
            "messages_stream",
            "generate",
            "generate_stream",
        ],
    );
}

#[test]
fn the_official_node_sdks_get_the_same_bytes() {
    let Some(modules) = path("sdks", "node_modules") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/peers/sdks/relayed.mjs");
    let folder = modules.parent().expect("a folder");
    same_through_the_relay(
        Command::new("node").arg(script).current_dir(folder),
        &["chat", "chat_stream", "respond", "respond_stream", "messages", "messages_stream"],
    );
}
