//! `--check`: what would be in force, and what cannot be.

use serde_json::{Value, json};

use super::support::{APP_KEY_HASH, ConfigFile};
use crate::support::{Ran, run, steadfast};

fn check(text: &str, more: &[&str]) -> (Ran, ConfigFile) {
    // Tests of one process run at once.
    let name = format!("check-{:?}", std::thread::current().id());
    let file = ConfigFile::new(&name, text);
    let mut command = steadfast(&["serve", "--check", "--config", file.path()]);
    (run(command.args(more).env("PROVIDER_KEY", "sk-s3cret")), file)
}

#[test]
fn what_is_in_force_is_told_with_where_it_comes_from() {
    let text = format!(
        "listen = \"0.0.0.0:9\"\ndrain = 5\n\n[limits]\nsilence = inf\n\n[upstream.openai]\nkey_env = \"PROVIDER_KEY\"\n\
         limits = {{ connect = 2.5 }}\n\n[keys]\nlaptop = \"{APP_KEY_HASH}\"\n"
    );
    let (ran, file) = check(&text, &["--upstream", "local=http://127.0.0.1:1/base", "--share-port"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let rows: Vec<String> =
        ran.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for row in [
        format!("{} can be put in force.", file.path()).as_str(),
        "listen 0.0.0.0:9 line 1",
        "max_connections 1024 built-in",
        "max_app_connections 2048 built-in",
        "drain 5 line 2",
        "share_port true --share-port",
        "keys laptop",
        "recording nowhere",
        "/openai/… goes to https://api.openai.com/… (built-in)",
        "key from PROVIDER_KEY",
        "connect 2.5 [upstream.openai.limits], line 9",
        "silence inf [limits], line 5",
        "first_byte 610 built-in",
        "/local/… goes to http://127.0.0.1:1/base/… (--upstream)",
    ] {
        assert!(rows.iter().any(|told| told == row), "{row}\n{}", ran.stdout);
    }

    let (ran, _file) = check(&text, &["--json"]);
    let told: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(told["listen"], json!({"value": "0.0.0.0:9", "source": "line 1"}));
    assert_eq!(told["drain"], json!({"value": 5, "source": "line 2"}));
    assert_eq!(told["keys"], json!(["laptop"]));
    let openai = &told["upstreams"][0];
    assert_eq!((&openai["name"], &openai["shape"]), (&json!("openai"), &json!("openai")));
    assert_eq!(openai["url"], json!({"value": "https://api.openai.com", "source": "built-in"}));
    assert_eq!(openai["limits"]["silence"], json!({"value": "inf", "source": "[limits], line 5"}));
    assert_eq!(openai["limits"]["may_resend"], json!({"value": false, "source": "built-in"}));
    assert!(!ran.stdout.contains("s3cret"));
}

#[test]
fn what_cannot_be_in_force_is_named_by_file_line_key_and_value() {
    for (text, said) in [
        (
            "[upstream.openai.limits]\nfirst_byte = 0",
            ":2: upstream.openai.limits.first_byte cannot be 0: it takes",
        ),
        (
            "[upstream.openai]\nlimit = 3",
            ":2: there is no setting upstream.openai.limit; the nearest is upstream.openai.limits",
        ),
        (
            "listen = \"0.0.0.0:1\"\n[upstream.openai]",
            ":1: listen = 0.0.0.0:1 lets in whoever reaches that address",
        ),
        ("[upstream.openai]\nkey_env = \"NOT_SET\"", ":1: upstream openai: the environment has no NOT_SET"),
        ("[keys]\na = \"sk-s3cret\"", ":2: keys.a takes the hash of a key"),
        ("drain = 3", ": there is no upstream"),
    ] {
        let (ran, file) = check(text, &[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("{}{said}", file.path())), "{said}\n{}", ran.stderr);
        assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
    }
    for (arguments, said) in [
        (&["--config", "no/such/relay.toml"][..], "no/such/relay.toml: No such file"),
        (&["--upstream", "groq"], "upstream groq needs a URL"),
        (&["--upstream", "a=http://u:s3cret@b"], "it holds a user name or password"),
        (&["--listen", "0.0.0.0:1", "--upstream", "openai"], "lets in whoever reaches that address"),
        (&["--listen", "localhost"], "invalid socket address"),
    ] {
        let ran = run(steadfast(&["serve", "--check"]).args(arguments));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(said) && !ran.stderr.contains("s3cret"), "{said}\n{}", ran.stderr);
    }
}
