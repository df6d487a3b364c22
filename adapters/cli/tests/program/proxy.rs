//! Proxies from the environment.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use crate::support::{call_scenario, run, steadfast};

/// A proxy that answers one request with `answer` and tells its head
fn proxy(answer: String) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://me:DO-NOT-PRINT@{}", listener.local_addr().expect("an address"));
    let serving = thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a client");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            peer.read_exact(&mut byte).expect("a head");
            head.extend(byte);
        }
        peer.write_all(answer.as_bytes()).expect("a client that reads");
        std::io::copy(&mut peer, &mut std::io::sink()).expect("a client that leaves");
        String::from_utf8(head).expect("text")
    });
    (url, serving)
}

fn call(base_url: &str) -> std::process::Command {
    steadfast(&["call", "--provider", "openai", "--base-url", base_url, "--no-stream", "Hi."])
}

#[test]
fn an_http_origin_is_asked_through_the_proxy_of_the_environment() {
    let body = r#"{"choices":[{"index":0,"message":{"content":"Hello"},"finish_reason":"stop"}]}"#;
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
    let (url, serving) = proxy(format!("{head} {length}\r\n\r\n{body}"));
    let ran = run(call("http://api.test/v1").env("http_proxy", &url).env("OPENAI_API_KEY", "key"));
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "Hello"), "{ran:?}");
    let head = serving.join().expect("the proxy is well");
    assert!(head.starts_with("POST http://api.test/v1/chat/completions HTTP/1.1\r\n"), "{head}");
}

#[test]
fn l08_a_proxy_s_refusal_is_told_as_such_and_exits_13() {
    let (url, serving) = proxy("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n".to_owned());
    let ran = run(call("https://api.test/v1").env("ALL_PROXY", &url).env("OPENAI_API_KEY", "key"));
    assert_eq!(ran.code, Some(13), "{ran:?}");
    assert!(ran.stderr.contains("the proxy answered CONNECT with 407"), "{ran:?}");
    assert!(!ran.stderr.contains("DO-NOT-PRINT"), "{ran:?}");
    assert!(serving.join().expect("the proxy is well").starts_with("CONNECT api.test:443 HTTP/1.1\r\n"));
}

#[test]
fn a_variable_that_cannot_be_used_is_named_at_once() {
    let proxied = |variable: &str| {
        let url = "ftp://me:DO-NOT-PRINT@proxy.test";
        run(call("https://api.test/v1").env(variable, url).env("OPENAI_API_KEY", "key"))
    };
    for variable in ["HTTPS_PROXY", "all_proxy"] {
        let ran = proxied(variable);
        assert_eq!(ran.code, Some(13), "{ran:?}");
        assert!(ran.stderr.contains(&format!("{variable}: the proxy's scheme is not one of")), "{ran:?}");
        assert!(!ran.stderr.contains("DO-NOT-PRINT"), "{ran:?}");
    }
}

#[test]
fn a_server_on_this_machine_is_reached_directly() {
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", nobody.local_addr().expect("an address"));
    drop(nobody);
    let direct = call_scenario("unary-happy", &[]);
    assert_eq!(direct.code, Some(0), "{direct:?}");
    let (_mock, arguments) = crate::support::scenario("unary-happy");
    let ran = run(steadfast(&[]).args(arguments).env("ALL_PROXY", url));
    assert_eq!((ran.code, ran.stdout), (Some(0), direct.stdout), "{}", ran.stderr);
}
