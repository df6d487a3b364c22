//! The official SDKs, unmodified, through the relay: what they get is what they get without it.

use std::process::{Command, Output};

use serde_json::Value;
use steadfast_tests::peers::path;

use super::support::Serving;
use super::tls::Identity;

/// Plays these calls directly and through a relay, by HTTP and by HTTPS, and compares what came, byte for byte
fn same_through_the_relay(language: &str, script: impl Fn() -> Command, calls: &[&str]) {
    let provider = Serving::start(&[]);
    let url = format!("http://{}", provider.address());
    let upstreams = ["openai", "anthropic", "gemini"].map(|name| format!("{name}={url}/{name}"));
    let plain: Vec<&str> = upstreams.iter().flat_map(|upstream| ["--upstream", upstream]).collect();
    let identity = Identity::new(language);
    let (certificate, key) = (identity.path("certificate"), identity.path("key"));
    let secure = [&plain[..], &["--tls-certificate", &certificate, "--tls-key", &key]].concat();
    for arguments in [plain, secure] {
        let relay = Serving::start(&arguments);
        let relayed = relay.listening["base_url"].as_str().expect("a URL");
        let mut script = script();
        // By the variables that each of the languages knows
        script.env("SSL_CERT_FILE", identity.path("ca")).env("NODE_EXTRA_CA_CERTS", identity.path("ca"));
        compare(&script.args([&url, relayed]).output().expect("it runs"), calls);
        println!("sdks: {} calls through {relayed}, byte for byte as without it", calls.len());
        relay.stop();
    }
    provider.stop();
}

fn compare(output: &Output, calls: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lines = String::from_utf8(output.stdout.clone()).expect("JSON");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let made: Vec<&str> = lines.iter().filter_map(|line| line["call"].as_str()).collect();
    assert_eq!(made, calls);
    for line in &lines {
        assert_eq!(line["direct"], line["relayed"], "{line}");
        assert_eq!(line["direct"][1], 200, "{line}");
        assert!(line["direct"][0].as_str().is_some_and(|text| text.starts_with("Hello!")), "{line}");
    }
}

#[test]
fn the_official_python_sdks_get_the_same_bytes() {
    let Some(python) = path("sdks", "python/bin/python") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/peers/sdks/relayed.py");
    same_through_the_relay(
        "python",
        || {
            let mut command = Command::new(&python);
            command.args(["-W", "ignore", script]);
            command
        },
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
        "node",
        || {
            let mut command = Command::new("node");
            command.arg(script).current_dir(folder);
            command
        },
        &["chat", "chat_stream", "respond", "respond_stream", "messages", "messages_stream"],
    );
}
