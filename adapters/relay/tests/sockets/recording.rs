//! What goes through, in a database.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use steadfast_relay::Side;
use steadfast_relay::record::{Call, Calls, Database, RecordSettings, Recorder};

use crate::support::{Peer, Rig};

/// Far longer than a flush takes
const CAP: Duration = Duration::from_secs(60);
/// Names the file to a test that plays the process which is to be killed, or whose disk is to be filled;
/// without it, there is nothing for such a test to do
const FILE: &str = "STEADFAST_TEST_RECORDS";
const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A folder of its own that goes with the test
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("steadfast-{name}-{}", std::process::id()));
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("calls.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn open(file: &Path, settings: RecordSettings) -> Recorder {
    Recorder::open(&Database::File(file.to_owned()), settings).unwrap()
}

pub(crate) fn read(file: &Path) -> Calls {
    Calls::open(&Database::File(file.to_owned())).unwrap()
}

fn unix_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64
}

/// One call over these connections: a question with a number in it, and an echo of the key in the answer
async fn ask(app: &mut Peer, provider: &mut Peer, number: u32) {
    let body = format!("{{\"question\":{number}}}");
    let length = body.len();
    app.send(format!(
        "POST /openai/v1/chat?key=in-query-1234 HTTP/1.1\r\nHost: relay\r\nAuthorization: Bearer sk-secret-9\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    ))
    .await;
    provider.until(&format!("\r\n\r\n{body}")).await;
    let event = format!("data: answer {number} to sk-secret-9\n\n");
    provider.send(format!("{EVENTS}{:x}\r\n{event}\r\n0\r\n\r\n", event.len())).await;
    app.until("\r\n0\r\n\r\n").await;
}

/// The first call of an app, with both connections
async fn first(rig: &Rig) -> (Peer, Peer) {
    let mut app = rig.app().await;
    app.send("GET /openai/v1/models HTTP/1.1\r\nHost: relay\r\n\r\n").await;
    let mut provider = rig.accept().await;
    provider.until("\r\n\r\n").await;
    provider.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await;
    app.until("\r\n\r\n{}").await;
    (app, provider)
}

fn body(calls: &Calls, call: &Call, side: Side) -> Vec<u8> {
    let runs = calls.body(call, side).unwrap().runs();
    assert!(runs.len() <= 1, "{runs:?}");
    runs.into_iter().next().unwrap_or_default().1
}

#[tokio::test]
async fn calls_are_recorded_whole_and_without_credentials() {
    let folder = Folder::new("whole");
    let recorder = open(&folder.file(), RecordSettings::default());
    let rig = Rig::observed(Arc::new(recorder.clone())).await;
    let before = unix_micros();
    let (mut app, mut provider) = first(&rig).await;
    for number in 1..200 {
        ask(&mut app, &mut provider, number).await;
    }
    // The end of the last one is told once its connection is read again.
    app.send("GET /nowhere HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n").await;
    assert!(app.until("}}").await.starts_with("HTTP/1.1 404 "));
    app.rest().await;
    assert!(recorder.flush(CAP));
    let after = unix_micros();
    assert_eq!((recorder.dropped(), recorder.trouble()), (0, None));

    let calls = read(&folder.file());
    let mut all = calls.recent(1_000).unwrap();
    all.reverse();
    assert_eq!(all.len(), 201);
    for (number, call) in all[..200].iter().enumerate().skip(1) {
        assert_eq!(body(&calls, call, Side::Request), format!("{{\"question\":{number}}}").into_bytes());
        let answer = String::from_utf8(body(&calls, call, Side::Answer)).unwrap();
        assert!(answer.starts_with(&format!("data: answer {number} to ")), "{answer}");
        assert_eq!(answer.len() as u64, call.answer_bytes);
        assert_eq!((call.ending().as_str(), call.status, call.sends), ("passed", Some(200), 1));
        assert_eq!((call.method.as_str(), call.route.as_deref()), ("POST", Some("openai")));
        assert_eq!(call.target, "/openai/v1/chat?key=[credential]");
        let times = [Some(before), Some(call.begun), call.answered, call.ended, Some(after)];
        assert!(times.is_sorted(), "{times:?}");
        assert!(call.waterfall.as_ref().unwrap().contains("request"));
    }
    assert_eq!((all[200].ending().as_str(), all[200].status), ("not_found", Some(404)));
    let by_id = calls.find(&all[7].name()).unwrap().unwrap();
    assert_eq!(by_id, all[7]);
    let since = calls.ended_since(all[190].ended.unwrap(), 1_000).unwrap();
    assert!(since.contains(&all[190]) && since.contains(&all[200]) && !since.contains(&all[0]));
    assert_eq!(calls.find("req_0").unwrap(), None);

    for entry in std::fs::read_dir(&folder.0).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        for secret in ["sk-secret-9", "in-query-1234"] {
            assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret}");
        }
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(folder.file()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn what_is_too_old_or_too_much_goes() {
    let folder = Folder::new("retained");
    let most = 400 * 1024;
    let settings = RecordSettings { max_bytes: most, ..RecordSettings::default() };
    let recorder = open(&folder.file(), settings);
    let rig = Rig::observed(Arc::new(recorder.clone())).await;
    let (mut app, mut provider) = first(&rig).await;
    let mut number = 0;
    for _ in 0..10 {
        for _ in 0..100 {
            number += 1;
            ask(&mut app, &mut provider, number).await;
        }
        assert!(recorder.flush(CAP));
    }
    let left = read(&folder.file()).recent(10_000).unwrap();
    assert!((64..900).contains(&left.len()), "{}", left.len());
    let newest = body(&read(&folder.file()), &left[1], Side::Request);
    assert!(String::from_utf8(newest).unwrap().contains("question"));

    let settings = RecordSettings { max_age: Duration::ZERO, ..settings };
    let recorder = open(&folder.file(), settings);
    assert!(recorder.flush(CAP));
    assert_eq!(read(&folder.file()).recent(10).unwrap(), []);
}

#[tokio::test]
async fn a_full_queue_drops_records_and_no_call() {
    let folder = Folder::new("behind");
    let settings = RecordSettings { max_queued_bytes: 300, ..RecordSettings::default() };
    let recorder = open(&folder.file(), settings);
    let rig = Rig::observed(Arc::new(recorder.clone())).await;
    let (mut app, mut provider) = first(&rig).await;
    for number in 1..50 {
        ask(&mut app, &mut provider, number).await;
    }
    assert!(recorder.flush(CAP));
    assert!(recorder.dropped() >= 49, "{}", recorder.dropped());
    assert_eq!(recorder.queued_bytes(), 0);
    // Of the ends of calls there was room for all.
    assert!(read(&folder.file()).recent(100).unwrap().len() >= 49);
}

#[test]
fn other_files_are_refused() {
    let folder = Folder::new("refused");
    let other = folder.0.join("text");
    std::fs::write(&other, "no database at all, and longer than a header of one is".repeat(10)).unwrap();
    let error = Recorder::open(&Database::File(other.clone()), RecordSettings::default()).err().unwrap();
    assert!(error.to_string().contains("is no file of records"), "{error}");
    assert!(std::fs::read_to_string(&other).unwrap().starts_with("no database"));
    let nothing = Calls::open(&Database::File(folder.0.join("nothing"))).err().unwrap();
    assert!(nothing.to_string().contains("nothing: "), "{nothing}");
    assert!(!folder.0.join("nothing").exists());
}

/// This test once more, in a process of its own, with what goes before its start on the command line
fn child(test: &str, file: &Path, shell: &str) -> Child {
    Command::new("sh")
        .args(["-c", &format!("{shell} exec \"$0\" \"$@\"")])
        .arg(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(FILE, file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_relay_that_is_killed_loses_no_call_that_was_over_a_second_before() {
    let folder = Folder::new("killed");
    let mut child = child("recording::records_until_it_is_killed", &folder.file(), "");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut over: Vec<(u32, i64)> = Vec::new();
    // Calls for two seconds, so that some were over long enough before.
    while over.last().is_none_or(|last| last.1 < over[0].1 + 2_000_000) {
        let line = lines.next().expect("it goes on until it is killed").unwrap();
        let Some((_, rest)) = line.split_once("over ") else { continue };
        let (number, at) = rest.split_once(' ').unwrap();
        over.push((number.parse().unwrap(), at.parse().unwrap()));
    }
    let killed = unix_micros();
    child.kill().unwrap();
    child.wait().unwrap();
    let calls = read(&folder.file());
    let kept: Vec<String> = calls
        .recent(u32::MAX)
        .unwrap()
        .iter()
        .filter(|call| call.ended.is_some())
        .map(|call| String::from_utf8(body(&calls, call, Side::Request)).unwrap())
        .collect();
    let old: Vec<_> = over.iter().filter(|(_, at)| *at < killed - 1_000_000).collect();
    assert!(old.len() > 10, "{}", old.len());
    for (number, at) in old {
        let question = format!("{{\"question\":{number}}}");
        assert!(kept.contains(&question), "{number}, over {} us before", killed - at);
    }
}

#[tokio::test]
async fn records_until_it_is_killed() {
    let Some(file) = env::var_os(FILE) else { return };
    let recorder = open(Path::new(&file), RecordSettings::default());
    let rig = Rig::observed(Arc::new(recorder)).await;
    let (mut app, mut provider) = first(&rig).await;
    for number in 1.. {
        ask(&mut app, &mut provider, number).await;
        println!("over {number} {}", unix_micros());
    }
}

#[test]
#[cfg(unix)]
fn where_the_disk_is_full_records_are_dropped_and_calls_go_on() {
    let folder = Folder::new("full");
    // Files of 512 blocks of 512 or 1,024 bytes, and an error past it in the place of a signal.
    let limit = "trap '' XFSZ; ulimit -f 512;";
    let child = child("recording::records_until_the_disk_is_full", &folder.file(), limit);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("50 calls more"), "{text}");
    let calls = read(&folder.file()).recent(u32::MAX).unwrap();
    assert!(calls.len() > 50, "{}", calls.len());
}

#[tokio::test]
async fn records_until_the_disk_is_full() {
    let Some(file) = env::var_os(FILE) else { return };
    let recorder = open(Path::new(&file), RecordSettings::default());
    let rig = Rig::observed(Arc::new(recorder.clone())).await;
    let (mut app, mut provider) = first(&rig).await;
    let mut number = 0;
    while recorder.dropped() == 0 {
        number += 1;
        assert!(number < 100_000, "the disk never was full");
        ask(&mut app, &mut provider, number).await;
        // What is written together is lost together: these are there before it is full.
        if number == 55 {
            assert!(recorder.flush(CAP));
        }
    }
    for _ in 0..50 {
        number += 1;
        ask(&mut app, &mut provider, number).await;
    }
    assert!(recorder.flush(CAP));
    println!("50 calls more; {} dropped: {}", recorder.dropped(), recorder.trouble().unwrap());
}
