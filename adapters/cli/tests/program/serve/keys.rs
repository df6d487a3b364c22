//! Keys of the relay's own, and keys of providers.

use std::io::Write;
use std::process::Stdio;

use super::support::{APP_KEY, APP_KEY_HASH, ConfigFile, Provider, Serving};
use crate::support::{finish, spawn, steadfast};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[test]
fn only_an_app_with_a_key_is_let_in_and_the_key_goes_no_further() {
    let provider = Provider::new();
    let url = &provider.url;
    let text = format!(
        "[keys]\nlaptop = \"{APP_KEY_HASH}\"\n[upstream.plain]\nurl = \"{url}\"\n[upstream.anthropic]\n\
         url = \"{url}\"\nkey_env = \"PROVIDER_KEY\"\n"
    );
    let file = ConfigFile::new("keys", &text);
    let mut command = steadfast(&["serve", "--json", "--listen", "127.0.0.1:0", "--config", file.path()]);
    let serving = Serving::with(command.env("PROVIDER_KEY", "sk-of-the-relay"), &[]);

    for fields in ["", "x-steadfast-key: wrong-0123456789\r\n", "authorization: Bearer sk-of-the-app\r\n"] {
        for (path, shape) in
            [("/plain/v1/x", "\"code\":\"unauthorized\""), ("/anthropic/v1/x", "authentication_error")]
        {
            let answer = serving.answer(path, fields, "{}");
            assert!(
                answer.starts_with("HTTP/1.1 401 ") && answer.contains("unauthorized"),
                "{fields}: {answer}"
            );
            assert!(answer.contains("x-should-retry: false\r\n"), "{shape}: {answer}");
        }
    }
    assert!(provider.is_alone(), "nothing was sent for them");

    let own = format!("x-steadfast-key: {APP_KEY}\r\nauthorization: Bearer sk-of-the-app\r\n");
    let as_sdk = format!("x-api-key: {APP_KEY}\r\n");
    let both = format!("x-steadfast-key: {APP_KEY}\r\nauthorization: Bearer {APP_KEY}\r\n");
    for (path, fields, sent) in [
        ("/plain/v1/x", &own, "\r\nauthorization: Bearer sk-of-the-app\r\n"),
        ("/anthropic/v1/x", &as_sdk, "\r\nx-api-key: sk-of-the-relay\r\n"),
        ("/anthropic/v1/x", &own, "\r\nx-api-key: sk-of-the-relay\r\n"),
        ("/plain/v1/x", &both, "POST "),
    ] {
        let mut app = serving.ask(path, fields, "{}");
        let (mut peer, request) = provider.accept();
        peer.send(ANSWER);
        assert_eq!(app.until("\r\n\r\n"), ANSWER);
        assert!(request.contains(sent), "{fields}: {request}");
        assert!(!request.contains(APP_KEY) && !request.contains("x-steadfast-key"), "{fields}: {request}");
        let is_injected = path == "/anthropic/v1/x";
        assert_eq!(request.contains("sk-of-the-app"), !is_injected && fields == &own, "{request}");
    }
    let ended = serving.stop();
    assert_eq!(ended.code, Some(0));
    assert!(!ended.said.contains("key") && !ended.said.contains("sk-"), "{}", ended.said);
}

#[test]
fn a_key_is_hashed_as_the_file_wants_it() {
    let hash = |input: &str| {
        let mut child = spawn(steadfast(&["serve", "--hash-key"]).stdin(Stdio::piped()));
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
        finish(child)
    };
    for input in [APP_KEY.to_owned(), format!("{APP_KEY}\n"), format!(" {APP_KEY}\r\n")] {
        let ran = hash(&input);
        assert_eq!(
            (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
            (Some(0), &*format!("{APP_KEY_HASH}\n"), "")
        );
    }
    for (input, said) in [
        ("", "there is no key on stdin"),
        ("\n", "there is no key on stdin"),
        ("s3cret", "a key of fewer than 16 characters can be found from its hash"),
        ("s3cret s3cret s3cret", "the key holds a character that a header cannot carry"),
    ] {
        let ran = hash(input);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(said) && !ran.stderr.contains("s3cret"), "{}", ran.stderr);
    }
}
