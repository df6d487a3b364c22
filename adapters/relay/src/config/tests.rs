//! Files that are read, and files that are refused.

use steadfast::relay::Shape;

use super::*;

fn refusal(text: &str) -> String {
    let refused = |name: &str| (name == "BROKEN_KEY").then(|| "sk-\nsecret".to_owned());
    match Config::from_toml(text) {
        Ok(config) => config.routes(refused).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    }
}

const WHOLE: &str = r#"
listen = "[::1]:0"
max_connections = 7
drain = inf
share_port = true

[upstream.openai]
key_env = "OPENAI_API_KEY"

[upstream.openai.limits]
total = "inf"
connect = 2

[upstream.anthropic]
url = "http://127.0.0.1:9/base/"
key_env = "OTHER_KEY"

[upstream.gemini]
key_env = "OTHER_KEY"

[upstream.local]
url = "http://127.0.0.1:8080"
shape = "anthropic"
retries = { may_resend = true, pause = 0 }

# Holds for all, wherever it stands.
[limits]
connect = 3.5
silence = 0x10

[retries]
max_body_bytes = 0
overloads = 5

[keys]
laptop = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"#;

#[test]
fn a_whole_file_says_what_it_says() {
    let config = Config::from_toml(WHOLE).unwrap();
    assert_eq!(config.listen.value.to_string(), "[::1]:0");
    assert_eq!(config.listen.source, Source::File { table: String::new(), line: 2 });
    assert_eq!((config.max_connections.value, config.drain.value), (Some(7), Bound::Unbounded));
    assert_eq!(config.max_app_connections.value, Some(14));
    assert!(config.share_port.value && !config.without_keys.value);
    assert_eq!(config.keys.labels().collect::<Vec<_>>(), ["laptop"]);

    let names: Vec<_> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    assert_eq!(names, ["openai", "anthropic", "gemini", "local"]);
    let [openai, _, _, local] = &config.upstreams[..] else { panic!("four") };
    let written = |upstream: &Upstream| Limit::ALL.map(|limit| upstream.limits.get(limit));
    assert_eq!(written(openai), ["2", "610", "16", "inf", "1", "5", "0.2", "0.1", "0", "false"]);
    assert_eq!(written(local), ["3.5", "610", "16", "3600", "1", "5", "0", "0.1", "0", "true"]);
    for (limit, source) in [
        (Limit::Connect, "[upstream.openai.limits], line 12"),
        (Limit::Silence, "[limits], line 29"),
        (Limit::FirstByte, "built-in"),
    ] {
        assert_eq!(openai.limits.source(limit).to_string(), source);
    }
    assert_eq!(local.limits.source(Limit::MayResend).to_string(), "[upstream.local.retries], line 24");

    let routes = config.routes(|name| Some(format!("sk-{name}"))).unwrap();
    assert!(routes.gate().is_some());
    let routes: Vec<_> = routes.iter().map(|(_, route)| route).collect();
    let upstreams: Vec<_> = routes.iter().map(|route| route.upstream()).collect();
    assert_eq!(
        upstreams,
        [
            "https://api.openai.com",
            "http://127.0.0.1:9/base",
            "https://generativelanguage.googleapis.com",
            "http://127.0.0.1:8080"
        ]
    );
    let keys: Vec<_> = routes
        .iter()
        .map(|route| route.key.as_ref().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())))
        .collect();
    let key = |text: &str| Some(text.to_owned());
    assert_eq!(
        keys,
        [
            key("authorization: Bearer sk-OPENAI_API_KEY"),
            key("x-api-key: sk-OTHER_KEY"),
            key("x-goog-api-key: sk-OTHER_KEY"),
            None
        ]
    );
    let shapes: Vec<_> = routes.iter().map(|route| route.shape).collect();
    assert_eq!(shapes, [Shape::OpenAi, Shape::Anthropic, Shape::Google, Shape::Anthropic]);
    assert_eq!(routes[0].limits.total, Bound::Unbounded);
    assert!(routes[3].may_resend && !routes[0].may_resend);
}

#[test]
fn what_the_command_line_says_goes_before_the_file() {
    let mut config = Config::from_toml(WHOLE).unwrap();
    config.upstream("openai=http://127.0.0.1:1", "--upstream").unwrap();
    config.upstream("groq = https://api.groq.com/openai", "--upstream").unwrap();
    let groq = config.upstreams.last().unwrap();
    assert_eq!((groq.shape, groq.limits.get(Limit::Connect)), (Shape::OpenAi, "3.5".to_owned()));
    let routes = config.routes(|_| Some("sk-1".to_owned())).unwrap();
    let upstream = |name| routes.get(routes.named(name).unwrap()).upstream();
    assert_eq!(
        (upstream("openai"), upstream("groq")),
        ("http://127.0.0.1:1".into(), "https://api.groq.com/openai".into())
    );
    assert_eq!(routes.get(routes.named("openai").unwrap()).limits.total, Bound::Unbounded);

    let mut config = Config::default();
    config.upstream("anthropic", "--upstream").unwrap();
    assert_eq!(config.upstreams[0].shape, Shape::Anthropic);
    let error = config.upstream("groq", "--upstream").unwrap_err().to_string();
    assert_eq!(error, "upstream groq needs a URL: only openai, anthropic and gemini are known by name");
}

#[test]
fn what_cannot_be_is_refused_by_line_key_and_value() {
    for (text, said) in [
        ("listen = ", "1: string values must be quoted"),
        ("listen = \"localhost\"", "1: listen cannot be \"localhost\": it takes an address and a port"),
        ("listen = 7071", "1: listen takes an address and a port"),
        ("max_connections = 0", "1: max_connections cannot be 0: it takes a whole number from 1, or inf"),
        (
            "max_app_connections = 0",
            "1: max_app_connections cannot be 0: it takes a whole number from 1, or inf",
        ),
        ("max_connections = -1", "1: max_connections cannot be -1"),
        ("drain = nan", "1: drain cannot be nan: it takes seconds over 0"),
        ("[recording]", "1: recording.database is missing: name a file"),
        (
            "[recording]\ndatabase = \"mysql://u:s3cret@h/d\"",
            "2: recording.database: a database is a file or postgres://user@host/name, and not a URL with mysql://",
        ),
        (
            "[recording]\ndatabase = \"postgres://u:s3cret@h:port/d\"",
            "2: recording.database: a URL of PostgreSQL is postgres://user@host:port/name: it is none",
        ),
        (
            "[recording]\ndatabase = \"a\"\nmax_age = inf",
            "3: recording.max_age cannot be inf: it takes seconds over 0",
        ),
        (
            "[recording]\nmax_bytes = -1",
            "2: recording.max_bytes cannot be -1: it takes a whole number of bytes",
        ),
        (
            "[recording]\nmax_size = 1",
            "2: there is no setting recording.max_size; the nearest is recording.max_",
        ),
        ("drain = [1]", "1: drain takes one value"),
        ("share_port = 1", "1: share_port cannot be 1: it takes true or false"),
        (
            "\n[limits]\nfirst_bite = 1",
            "3: there is no setting limits.first_bite; the nearest is limits.first_byte",
        ),
        ("[limits]\noverloads = 1", "2: there is no setting limits.overloads; the nearest is limits."),
        (
            "[limits]\nconnect = 0",
            "2: limits.connect cannot be 0: it takes seconds over 0 and up to 1e9, or inf",
        ),
        ("[limits]\nconnect = nan", "2: limits.connect cannot be nan"),
        ("[limits]\nconnect = -inf", "2: limits.connect cannot be -inf"),
        ("[limits]\nconnect = true", "2: limits.connect cannot be true"),
        ("limits = 3", "1: limits is a table: write it as [limits]"),
        ("[retries]\nconnects = 1.5", "2: retries.connects cannot be 1.5: it takes a whole number from 0"),
        ("[retries]\nmay_resend = 1", "2: retries.may_resend cannot be 1: it takes true or false"),
        ("upstreams = 3", "1: there is no setting upstreams; the nearest is upstream"),
        ("upstream = \"https://a\"", "1: upstream is a table: write it as [upstream]"),
        (
            "[upstream.openai]\nurls = \"x\"",
            "2: there is no setting upstream.openai.urls; the nearest is upstream.openai.url",
        ),
        ("[upstream.openai.limits]\ntotal = -3", "2: upstream.openai.limits.total cannot be -3"),
        ("[upstream.groq]\nshape = \"openai\"", "1: upstream groq needs a URL"),
        (
            "[upstream.openai]\nshape = \"chat\"",
            "2: upstream.openai.shape cannot be \"chat\": it takes \"openai\"",
        ),
        ("[upstream.openai]\nurl = 3", "2: upstream.openai.url takes a URL"),
        (
            "[upstream.openai]\nurl = \"api.openai.com\"",
            "2: upstream \"openai\": the URL cannot be read: it needs a scheme",
        ),
        (
            "[upstream.openai]\nurl = \"https://u:s3cret@a\"",
            "2: upstream \"openai\": the URL cannot be read: it holds a user",
        ),
        ("[upstream.openai]\nurl = \"https://a?k=s3cret\"", "2: upstream \"openai\": the URL has a query"),
        ("[upstream.\"a/b\"]\nurl = \"https://a\"", "2: the route name \"a/b\" is no path segment"),
        (
            "[upstream.healthz]\nurl = \"https://a\"",
            "the route name \"healthz\" is one of the relay's own paths",
        ),
        (
            "[upstream.openai]\nkey_env = \"sk-s3cret\"",
            "2: upstream.openai.key_env takes the name of an environment variable",
        ),
        (
            "[upstream.openai]\nkey_env = \"NO_KEY\"",
            "1: upstream openai: the environment has no NO_KEY: set it",
        ),
        (
            "[upstream.openai]\nkey_env = \"BROKEN_KEY\"",
            "1: upstream openai: BROKEN_KEY holds a character that a header",
        ),
        (
            "[keys]\nlaptop = \"s3cret\"",
            "2: keys.laptop takes the hash of a key, as `steadfast serve --hash-key` prints",
        ),
        (
            "[keys]\na = \"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"\n\
             b = \"sha256:BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"",
            "3: keys.a and keys.b are one key",
        ),
        ("[upstream.a]\nurl = \"https://a\"\n[upstream.a]\nurl = \"https://b\"", "3: duplicate key"),
        ("", "there is no upstream: add one"),
        (
            "listen = \"0.0.0.0:1\"\n[upstream.openai]",
            "1: listen = 0.0.0.0:1 lets in whoever reaches that address: add keys",
        ),
    ] {
        let refused = refusal(text);
        assert!(refused.starts_with(said), "{text}\n{refused}\n{said}");
        assert!(!refused.contains("s3cret") && !refused.contains("sk-"), "{refused}");
    }
}

#[test]
fn another_address_needs_keys_or_a_word() {
    let with = |more: &str| {
        let text = format!("listen = \"0.0.0.0:1\"\n{more}\n[upstream.openai]\n");
        Config::from_toml(&text).unwrap().routes(|_| None)
    };
    assert!(with("without_keys = true").is_ok());
    let key = KEY;
    assert!(with(&format!("[keys]\na = \"{key}\"")).is_ok());
    assert!(with("").is_err());
    for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        let text = format!("listen = \"{address}\"\n[upstream.openai]\n");
        assert!(Config::from_toml(&text).unwrap().routes(|_| None).is_ok(), "{address}");
    }
}

const KEY: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn a_recording_is_what_the_file_says_over_the_defaults() {
    let text = "[recording]\ndatabase = \"calls.db\"\nmax_age = 60\nmax_request_bytes = 7\n";
    let recording = Config::from_toml(text).unwrap().recording.unwrap();
    assert_eq!(recording.database.value, Database::File("calls.db".into()));
    let mut expected = RecordSettings { max_age: Duration::from_secs(60), ..RecordSettings::default() };
    expected.caps.request = 7;
    assert_eq!(recording.settings, expected);
    assert_eq!(Config::default().recording, None);
}
