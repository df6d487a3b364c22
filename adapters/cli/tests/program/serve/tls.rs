//! TLS towards apps, met by other people's clients.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use serde_json::{Value, json};

use super::support::{ConfigFile, Provider, Serving};
use crate::support::{Ran, run, steadfast};

/// The files of a certificate for 127.0.0.1, and of the authority that has signed it
pub(super) struct Identity {
    folder: PathBuf,
}

impl Identity {
    pub(super) fn new(name: &str) -> Self {
        let name = format!("tls-{name}-{}", std::process::id());
        let identity = Self { folder: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name) };
        std::fs::create_dir_all(&identity.folder).expect("a folder");
        identity.issue();
        identity
    }

    /// Another certificate, of another authority, in the same files
    pub(super) fn issue(&self) {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        authority.distinguished_name.push(DnType::CommonName, "authority of a test");
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key"));
        let authority = authority.expect("an authority");
        let mut certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
        certificate.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().expect("a key");
        let certificate = certificate.signed_by(&key, &authority).expect("a certificate");
        for (file, text) in
            [("ca", authority.pem()), ("certificate", certificate.pem()), ("key", key.serialize_pem())]
        {
            std::fs::write(self.path(file), text).expect("a file");
        }
    }

    /// `ca`, `certificate` or `key`
    pub(super) fn path(&self, file: &str) -> String {
        self.folder.join(format!("{file}.pem")).to_str().expect("a path in UTF-8").to_owned()
    }

    /// The table of a configuration
    fn table(&self) -> String {
        format!("[tls]\ncertificate = \"{}\"\nkey = \"{}\"\n", self.path("certificate"), self.path("key"))
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        // The target directory may keep what cannot be removed.
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What curl says, trusting that authority; `None` where there is no curl, which with `CI` set is a failure
fn curl(ca: &str, arguments: &[&str]) -> Option<Ran> {
    let ran = Command::new("curl").args(["-sS", "--max-time", "30", "--cacert", ca]).args(arguments).output();
    match ran {
        Ok(output) => Some(output.into()),
        Err(error) if error.kind() == ErrorKind::NotFound && std::env::var_os("CI").is_none() => {
            println!("skipped: 1 (no curl)");
            None
        }
        Err(error) => panic!("curl: {error}"),
    }
}

#[test]
fn curl_gets_the_answer_by_https_and_by_nothing_else() {
    let (identity, stranger) = (Identity::new("curl"), Identity::new("stranger"));
    let serving = Serving::start(&[
        "--tls-certificate",
        &identity.path("certificate"),
        "--tls-key",
        &identity.path("key"),
    ]);
    let base = serving.listening["base_url"].as_str().expect("a URL").to_owned();
    assert_eq!(base, format!("https://{}", serving.address()));
    let url = format!("{base}/openai/v1/chat/completions");
    let body = r#"{"model": "any", "stream": true}"#;
    let ca = identity.path("ca");
    for version in ["--tlsv1.3", "--tls-max=1.2", "--http2"] {
        let version = version.split_once('=').map_or(vec![version], |(option, value)| vec![option, value]);
        let arguments = [&version[..], &["-D", "-", "-d", body, &url]].concat();
        let Some(ran) = curl(&ca, &arguments) else { return };
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{version:?}");
        assert!(ran.stdout.starts_with("HTTP/1.1 200 OK\r\n"), "{}", ran.stdout);
        assert!(ran.stdout.ends_with("data: [DONE]\n\n"), "{}", ran.stdout);
    }
    let refused = curl(&stranger.path("ca"), &["-d", body, &url]).expect("there is a curl");
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(60), ""), "{}", refused.stderr);
    let plain = url.replacen("https", "http", 1);
    let plain = curl(&ca, &["-d", body, &plain]).expect("there is a curl");
    assert!(plain.code != Some(0) && !plain.stdout.contains("HTTP/"), "{plain:?}");
    assert_eq!(serving.stop().code, Some(0));
}

#[test]
fn a_certificate_is_read_again_and_one_that_is_broken_leaves_that_in_force() {
    let identity = Identity::new("reload");
    let provider = Provider::new();
    let text = format!("{}\n[upstream.local]\nurl = \"{}\"\n", identity.table(), provider.url);
    let file = ConfigFile::new("tls-reload", &text);
    let mut serving = Serving::start(&["--config", file.path()]);
    let url = format!("https://{}/nowhere", serving.address());
    let old = identity.path("ca-of-before");
    std::fs::copy(identity.path("ca"), &old).expect("a copy");
    let status = |ca: &str| curl(ca, &["-o", "/dev/null", "-w", "%{http_code}", &url]).map(|ran| ran.stdout);
    let Some(answered) = status(&old) else { return };
    assert_eq!(answered, "404");

    let key = std::fs::read_to_string(identity.path("key")).expect("a key");
    std::fs::write(identity.path("key"), &key[..key.len() / 2]).expect("a file");
    serving.signal("HUP");
    let key_file = identity.path("key");
    serving.await_said(&format!(
        "the configuration in force stays: {key_file}: the private key is not valid PEM: it needs a PKCS#8"
    ));
    assert_eq!(status(&old).as_deref(), Some("404"));

    identity.issue();
    serving.signal("HUP");
    serving.await_said("steadfast: the configuration was read again and is in force\n");
    assert_eq!(status(&identity.path("ca")).as_deref(), Some("404"));
    assert_eq!(status(&old).as_deref(), Some("000"), "no longer");

    file.write(&format!("[upstream.local]\nurl = \"{}\"\n", provider.url));
    serving.signal("HUP");
    serving.await_said("steadfast: tls takes effect with the next start\n");
    serving.await_said("steadfast: the configuration was read again and is in force\n");
    assert_eq!(status(&identity.path("ca")).as_deref(), Some("404"), "still by HTTPS");
    assert_eq!(serving.stop().code, Some(0));
}

#[test]
fn a_check_reads_the_files_and_names_the_one_that_cannot_be_used() {
    let (identity, other) = (Identity::new("check"), Identity::new("other"));
    let (certificate, key) = (identity.path("certificate"), identity.path("key"));
    let check = |certificate: &str, key: &str| {
        let arguments = ["serve", "--check", "--json", "--upstream", "openai"];
        run(steadfast(&arguments).args(["--tls-certificate", certificate, "--tls-key", key]))
    };
    let ran = check(&certificate, &key);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let told: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(told["tls.certificate"], json!({"value": certificate, "source": "--tls-certificate"}));
    assert_eq!(told["tls.key"], json!({"value": key, "source": "--tls-key"}));

    let secret = std::fs::read_to_string(&key).expect("a key");
    let secret = secret.lines().nth(1).expect("a line of the key");
    for (certificate, key, said) in [
        ("no/such.pem", key.as_str(), "no/such.pem: No such file".to_owned()),
        (&certificate, "no/such.pem", "no/such.pem: No such file".to_owned()),
        (&key, &key, format!("{key}: the PEM text holds no certificate")),
        (&certificate, &certificate, format!("{certificate}: the private key is not valid PEM")),
        (
            &certificate,
            &other.path("key"),
            format!(
                "{certificate}, {}: the certificate and the private key cannot be used",
                other.path("key")
            ),
        ),
    ] {
        let ran = check(certificate, key);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(&said), "{said}\n{}", ran.stderr);
        assert!(!ran.stderr.contains(secret), "{}", ran.stderr);
    }
    for (text, said) in [
        ("[tls]\nkey = \"a\"\n", ":1: tls.certificate is missing: name a PEM file"),
        ("[tls]\ncertificate = \"a\"\n", ":1: tls.key is missing"),
        ("[tls]\nkey = 3\n", ":2: tls.key takes the name of a PEM file"),
        ("[tls]\nkey = \"-----BEGIN PRIVATE KEY-----s3cret\"\n", ":2: tls.key takes the name of a PEM file"),
        ("[tls]\nkeys = \"a\"\n", ":2: there is no setting tls.keys; the nearest is tls.key"),
    ] {
        let file = ConfigFile::new("tls-check", &format!("{text}[upstream.openai]\n"));
        let ran = run(&mut steadfast(&["serve", "--check", "--config", file.path()]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(said) && !ran.stderr.contains("s3cret"), "{said}\n{}", ran.stderr);
    }
    let ran = run(&mut steadfast(&["serve", "--check", "--tls-key", &key, "--upstream", "openai"]));
    assert!(ran.code == Some(2) && ran.stderr.contains("--tls-certificate <FILE>"), "{}", ran.stderr);
}
