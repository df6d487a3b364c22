//! No byte of a database is a credential's, wherever calls brought it and the provider repeated it.

use std::path::Path;

use super::postgres_server::Server;
use super::support::{APP_KEY, APP_KEY_HASH, ConfigFile, Provider, Serving};
use crate::support::steadfast;

/// The relay's own key to a provider
const INJECTED: &str = "sk-injected-31415926";

/// Header fields with a credential each
const FIELDS: [(&str, &str); 6] = [
    ("Authorization", "Bearer sk-bearer-271828"),
    ("X-Api-Key", "sk-xapikey-161803"),
    ("Api-Key", "sk-apikey-141421"),
    ("X-Goog-Api-Key", "AIza-goog-173205"),
    ("Cookie", "session=cookie-223606"),
    ("Proxy-Authorization", "Basic cHJveHk6cHctMjQ0OTQ4"),
];
/// Values in the query: twice, by an escaped name, and with an escape in it
const QUERY: &str = "alt=sse&key=query-264575&key=twice-282842&k%65y=named-300000&api_key=value%2D316227&access_token=token-331662";
const VALUES: [&str; 6] =
    ["query-264575", "twice-282842", "named-300000", "value%2D316227", "value-316227", "token-331662"];

/// Passes a call with all of them, whose answer repeats them in its head and in its body; then one of an app
/// with a key of the relay's, for which the relay puts in its own
fn carry_credentials(name: &str, database: &str) -> Vec<String> {
    let provider = Provider::new();
    let recording = format!("[recording]\ndatabase = {database:?}\n");
    let upstream = format!("[upstream.openai]\nurl = {:?}\n", provider.url);
    let bare = FIELDS.iter().map(|(_, value)| value.split([' ', '=']).next_back().expect("a part"));
    let values: Vec<String> = bare.chain(VALUES).map(str::to_owned).collect();
    let repeat = |secrets: &str, peer: &mut super::support::Peer| {
        peer.send(&format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nX-Repeated: {secrets}\r\nSet-Cookie: s={secrets}\r\n\
             Content-Length: {}\r\n\r\n{secrets}",
            secrets.len()
        ));
    };

    let config = ConfigFile::new(name, &format!("{recording}{upstream}"));
    let relay = Serving::start(&["--config", config.path()]);
    let fields: String = FIELDS.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut app = relay.ask(&format!("/openai/v1/chat/completions?{QUERY}"), &fields, "{}");
    let (mut peer, request) = provider.accept();
    assert!(request.contains("sk-xapikey-161803") && request.contains("key=query-264575"), "{request}");
    repeat(&values.join(" "), &mut peer);
    app.until("token-331662");
    drop((app, peer));
    // One that is refused, and one that nobody answers
    assert!(relay.answer(&format!("/nowhere?{QUERY}"), &fields, "{}").starts_with("HTTP/1.1 404 "));
    let mut app =
        relay.ask(&format!("/openai/v1/x?{QUERY}"), &format!("Connection: close\r\n{fields}"), "{}");
    drop(provider.accept());
    assert!(app.rest().starts_with("HTTP/1.1 502 "));
    assert_eq!(relay.stop().code, Some(0));

    let keys = format!("[keys]\nlaptop = {APP_KEY_HASH:?}\n");
    config.write(&format!("{recording}{upstream}key_env = \"PROVIDER_KEY\"\n{keys}"));
    let mut command = steadfast(&["serve", "--json", "--listen", "127.0.0.1:0", "--config", config.path()]);
    let relay = Serving::with(command.env("PROVIDER_KEY", INJECTED), &[]);
    let field = format!("Authorization: Bearer {APP_KEY}\r\n");
    let mut app = relay.ask("/openai/v1/chat/completions", &field, "{}");
    let (mut peer, request) = provider.accept();
    assert!(request.contains(INJECTED) && !request.contains(APP_KEY), "{request}");
    repeat(INJECTED, &mut peer);
    app.until(&format!("\r\n\r\n{INJECTED}"));
    drop((app, peer));
    assert!(
        relay.answer("/openai/v1/x", "Authorization: Bearer wrong-key-346410\r\n", "{}").contains(" 401 ")
    );
    assert_eq!(relay.stop().code, Some(0));
    let of_the_relay = [INJECTED, APP_KEY, "wrong-key-346410"].map(str::to_owned);
    values.into_iter().chain(of_the_relay).collect()
}

fn has(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

#[test]
fn no_credential_is_in_a_file_of_records() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("secrets-{}", std::process::id()));
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).expect("a folder");
    let file = folder.join("calls.db");
    let secrets = carry_credentials("secrets-file", file.to_str().expect("a path in UTF-8"));
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("our folder") {
        all.extend(std::fs::read(entry.expect("an entry").path()).expect("a file"));
    }
    assert!(has(&all, b"/openai/v1/chat/completions?alt=sse&key=[credential]"));
    for secret in secrets {
        assert!(!has(&all, secret.as_bytes()), "{secret}");
    }
    std::fs::remove_dir_all(&folder).expect("our folder");
}

#[test]
fn no_credential_is_in_postgres() {
    let Some(server) = Server::start("secrets") else { return };
    let mut secrets = carry_credentials("secrets-postgres", &server.url());
    secrets.push(super::postgres_server::PASSWORD.to_owned());
    let dump = server.dump();
    assert!(dump.contains("/openai/v1/chat/completions?alt=sse&key=[credential]"), "{dump}");
    // Bodies are in hexadecimal there.
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert!(dump.contains(&hex("{}")), "{dump}");
    for secret in secrets {
        assert!(!dump.contains(&secret) && !dump.contains(&hex(&secret)), "{secret}");
    }
}
