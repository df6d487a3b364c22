//! What the official SDKs send for each verb, and what ours send (rule RTY-5): the same but for what is
//! named here, with its reason.
//!
//! The SDKs are peers of `tests/run`, which installs them; where they are not, that is a skip.

mod multipart;
mod recorder;

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use steadfast::config::Overrides;
use steadfast::verb::{Row, Service, anthropic, gemini, openai};
use steadfast_blocking::Client;

use recorder::{Recorded, Recorder};
use steadfast_tests::peers::path;

const KEY: &str = "sk-of-the-test";

/// Verbs that the Python SDKs have no method for
const NOT_IN_THE_SDKS: &[(&str, &str, &str)] = &[
    ("openai", "FIM", "it is Mistral's, in the form of the Chat API"),
    ("gemini", "EMBED", "they ask for many at once, also where there is one"),
    ("gemini", "FILE_UPLOAD", "they upload resumably"),
    ("gemini", "PREDICT", "Google's for Python has it for its other service only"),
    ("gemini", "PREDICT_LONG_RUNNING", "the same"),
];

/// Header fields in which ours differ from the SDKs', and why
const DIFFERENT_HEADERS: &[(&str, &str, &str)] = &[
    ("anthropic", "anthropic-version", "2023-06-01 is the version whose answers the dialect is tested with"),
    ("anthropic", "authorization", "that version documents x-api-key, which the SDKs send no more"),
    ("anthropic", "x-api-key", "see authorization"),
    ("anthropic", "anthropic-beta", "under that version files are a beta"),
    ("gemini", "accept", "they take anything, and all answers but files are JSON"),
];

/// Verbs that the Python SDKs send as forms, which ours are held against part by part
const FORMS: &[(&str, &str)] = &[
    ("anthropic", "FILE_UPLOAD"),
    ("openai", "CONTAINER_FILE_CREATE"),
    ("openai", "FILE_UPLOAD"),
    ("openai", "IMAGE_EDIT"),
    ("openai", "IMAGE_VARIATION"),
    ("openai", "TRANSCRIBE"),
    ("openai", "TRANSLATE"),
    ("openai", "UPLOAD_PART"),
    ("openai", "VIDEO_CREATE"),
];

/// The header fields that say who asks, what is sent, and what is taken
const COMPARED: &[&str] = &[
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "anthropic-version",
    "anthropic-beta",
    "openai-beta",
    "x-goog-upload-protocol",
    "x-goog-upload-command",
    "accept",
];

#[test]
fn what_the_official_python_sdks_send() {
    let Some(python) = path("sdks", "python/bin/python") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/sdks/verbs.py");
    let (covered, forms) = differ_nowhere(Command::new(python).args(["-W", "ignore", script]));
    let expected: Vec<_> = FORMS.iter().map(|(api, name)| ((*api).to_owned(), (*name).to_owned())).collect();
    assert_eq!(forms.iter().cloned().collect::<Vec<_>>(), expected, "verbs that are sent as forms");
    let missing: Vec<_> = rows()
        .map(|(api, row)| (api.to_owned(), row.name.to_owned()))
        .filter(|verb| !covered.contains(verb))
        .filter(|(api, name)| !NOT_IN_THE_SDKS.iter().any(|known| (known.0, known.1) == (api, name)))
        .collect();
    assert_eq!(missing, [], "verbs that no SDK sent");
    let forms = forms.len();
    println!("sdks: {} verbs, {forms} of them forms, as the official Python SDKs send them", covered.len());
}

#[test]
fn what_the_official_node_sdks_send() {
    let Some(modules) = path("sdks", "node_modules") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/sdks/verbs.mjs");
    let folder = modules.parent().expect("it is in a folder");
    let (covered, forms) = differ_nowhere(Command::new("node").arg(script).current_dir(folder));
    assert!(covered.len() > 30, "{covered:?}");
    let forms = forms.len();
    println!("sdks: {} verbs, {forms} of them forms, as the official Node SDKs send them", covered.len());
}

/// Verbs, by their API and name
type Verbs = BTreeSet<(String, String)>;

/// Runs a script of SDKs, and holds ours against each verb that it sends; tells which those were, and which of
/// them are forms
fn differ_nowhere(script: &mut Command) -> (Verbs, Verbs) {
    let recorder = Recorder::start();
    let ran = script.arg(recorder.base_url()).output().expect("the script starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let theirs = recorder.take();
    let (mut covered, mut forms) = (Verbs::new(), Verbs::new());
    let mut differences = Vec::new();
    for announced in announcements(&theirs) {
        let sent: Vec<&Recorded> = theirs.iter().filter(|sent| sent.announced == announced.query).collect();
        let verb = (announced.api.clone(), announced.name.clone());
        if sent.iter().any(|sent| multipart::parts(sent.header("content-type"), &sent.body).is_some()) {
            forms.insert(verb.clone());
        }
        covered.insert(verb);
        // An SDK may do more for a verb than send it, such as ask where the answer is.
        let found: Vec<_> = sent.iter().map(|theirs| compare(&announced, theirs, &recorder)).collect();
        if found.iter().all(|found| !found.is_empty()) {
            differences.push(format!("{} {}: {found:?}", announced.api, announced.name));
        }
    }
    assert_eq!(differences, Vec::<String>::new());
    (covered, forms)
}

/// A verb that was announced to the recorder
struct Announced {
    query: String,
    api: String,
    name: String,
    ids: Vec<String>,
}

fn announcements(recorded: &[Recorded]) -> Vec<Announced> {
    let queries: BTreeSet<&str> = recorded.iter().map(|recorded| recorded.announced.as_str()).collect();
    queries
        .into_iter()
        .map(|query| {
            let field = |name: &str| {
                let found = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
                found.expect("the script says it").replace("%2C", ",").replace("%2F", "/").replace("%3A", ":")
            };
            let ids = field("ids").split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect();
            Announced { query: query.to_owned(), api: field("api"), name: field("name"), ids }
        })
        .collect()
}

fn rows() -> impl Iterator<Item = (&'static str, &'static Row)> {
    let apis = [("openai", openai::ALL), ("anthropic", anthropic::ALL), ("gemini", gemini::ALL)];
    apis.into_iter().flat_map(|(api, rows)| rows.iter().map(move |row| (api, *row)))
}

/// Sends the verb with the body that they sent, or a form with the same parts, and tells what differs
fn compare(announced: &Announced, theirs: &Recorded, recorder: &Recorder) -> Vec<String> {
    let Announced { api, name, ids, .. } = announced;
    let (_, row) = rows().find(|known| known.0 == api && known.1.name == name).expect("a verb of that name");
    let service = match api.as_str() {
        "openai" => Service::openai(KEY).at(&format!("{}/v1", recorder.base_url())),
        "anthropic" => Service::anthropic(KEY).at(&recorder.base_url()),
        _ => Service::gemini(KEY).at(&recorder.base_url()),
    };
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut request = service.row(row, &ids);
    let json = serde_json::from_slice::<Value>(&theirs.body).ok();
    let parts = multipart::parts(theirs.header("content-type"), &theirs.body);
    if let Some(json) = &json {
        request = request.json(json);
    } else if let Some(parts) = &parts {
        request = request.form(multipart::form(parts));
    }
    // The recorder's answer is no answer to most of them, which is to be seen once.
    let request = request.overrides(Overrides::new().max_attempts(1)).build().expect("a request");
    drop(Client::new().send(request));
    let [ours] = &recorder.take()[..] else { panic!("{name} is sent once") };

    let mut differences = Vec::new();
    let mut differ = |what: &str, ours: Option<&str>, theirs: Option<&str>| {
        if ours != theirs {
            differences.push(format!("{what}: ours {ours:?}, theirs {theirs:?}"));
        }
    };
    differ("method", Some(&ours.method), Some(&theirs.method));
    differ("target", Some(&ours.target), Some(&target(api, &theirs.target)));
    for field in COMPARED {
        let known = DIFFERENT_HEADERS.iter().any(|known| known.0 == api && known.1 == *field);
        let anything = *field == "accept" && theirs.header(field) == Some("*/*");
        if !known && !anything {
            differ(field, ours.header(field), theirs.header(field));
        }
    }
    if let Some(parts) = parts {
        let ours = multipart::parts(ours.header("content-type"), &ours.body);
        assert_eq!(ours, Some(parts), "{name}");
    }
    if let Some(json) = json {
        differ("content-type", ours.header("content-type"), theirs.header("content-type"));
        assert_eq!(serde_json::from_slice::<Value>(&ours.body).ok(), Some(json), "{name}");
    }
    differences
}

/// The target as ours is: Gemini's SDKs disagree on the version, and one says that it wants no stream
fn target(api: &str, target: &str) -> String {
    if api != "gemini" {
        return target.to_owned();
    }
    let target = target.strip_suffix("?stream=false").unwrap_or(target);
    target.replacen("/v1/", "/v1beta/", 1)
}
