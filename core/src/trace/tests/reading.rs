//! What is read back, and what is refused, by its line.

use super::{Drive, answered, read, stream, text};
use crate::config::Overrides;
use crate::machine::Event;
use crate::time::Instant;
use crate::trace::{Bodies, Finish, Line, Memory, Recorder, Trace};

fn recorded() -> String {
    let memory = Memory::default();
    answered(Recorder::new(memory.clone()));
    text(&memory)
}

fn refusal(trace: &str) -> String {
    Trace::read(trace.as_bytes()).unwrap_err().to_string()
}

#[test]
fn a_replay_shows_every_line_and_the_outcome() {
    let memory = Memory::default();
    let drive = answered(Recorder::new(memory.clone()));
    let (mut events, mut steps) = (Vec::new(), Vec::new());
    let replay = read(&memory).replay(|at, line| match line {
        Line::Event(event) => events.push((at, event.to_owned())),
        Line::Step(step) => steps.push(step.to_owned()),
    });
    assert!(replay.is_identical());
    assert_eq!((replay.events, replay.steps), (events.len() as u64, steps.len() as u64));
    assert_eq!(events[0], (Instant::from_nanos(5_000_000), "Start".to_owned()));
    let received = format!("Received(#1, {} bytes)", super::STREAM_HEAD.len());
    assert!(events.contains(&(Instant::from_nanos(30_000_000), received)));
    let recorded = text(&memory);
    let written: Vec<&str> = recorded.lines().filter(|line| line.starts_with("{\"step\"")).collect();
    assert_eq!(steps, written);
    let [ours, theirs] = [drive.outcome, replay.outcome].map(|outcome| outcome.unwrap());
    assert_eq!(ours.timeline, theirs.timeline);
    assert_eq!(theirs.turn().text(), "Hi");
}

#[test]
fn a_trace_that_was_changed_differs_at_that_line() {
    let trace = recorded();
    let lines: Vec<&str> = trace.lines().collect();
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("{\"step\"")) {
        let changed = line.replacen("\":", "\": ", 1);
        let trace = trace.replacen(line, &changed, 1);
        // The same wait may stand in several lines.
        let number = lines.iter().position(|other| other == line).unwrap().min(number);
        let difference = Trace::read(trace.as_bytes()).unwrap().replay(|_, _| {}).difference.unwrap();
        assert_eq!((difference.line, &*difference.recorded), (number as u64 + 1, &*changed));
        assert_eq!(difference.replayed, *line);
    }
}

#[test]
fn an_event_that_the_call_refuses_is_a_difference() {
    let trace = recorded().replace("\"event\":\"connected\"", "\"event\":\"start\"");
    let difference = Trace::read(trace.as_bytes()).unwrap().replay(|_, _| {}).difference.unwrap();
    assert_eq!((difference.line, &*difference.recorded), (5, "Start"));
    assert!(difference.replayed.starts_with("refused: Event::Start came twice"), "{}", difference.replayed);
    let step_first = recorded().replacen("{\"at\":5000000,\"event\":\"start\"}\n", "", 1);
    let trace = &step_first[..step_first.find("{\"end\"").unwrap()];
    let difference = Trace::read(trace.as_bytes()).unwrap().replay(|_, _| {}).difference.unwrap();
    assert_eq!((difference.line, &*difference.replayed), (2, "nothing, before any event"));
}

#[test]
fn one_that_is_cut_anywhere_is_read_as_far_as_it_goes() {
    let trace = recorded();
    let first = trace.find('\n').unwrap();
    for end in first..trace.len() {
        let read = Trace::read(&trace.as_bytes()[..end]).unwrap();
        let is_whole = end == trace.len() - 1;
        assert_eq!(read.finish(), if is_whole { Finish::Whole } else { Finish::Cut });
        assert_eq!(read.replay(|_, _| {}).difference, None, "cut at {end}");
    }
}

/// One whose counts were put right: that it was whole its last line says, and its steps do not
#[test]
fn one_that_never_ends_its_call_differs_at_its_end() {
    let trace = recorded();
    let lines: Vec<&str> = trace.lines().collect();
    let [.., done, end] = lines[..] else { panic!("{trace}") };
    assert!(done.starts_with("{\"step\":\"done\""));
    let without = |is_left_out: &dyn Fn(&&&str) -> bool| {
        let kept: Vec<&str> = lines.iter().filter(|line| !is_left_out(line)).copied().collect();
        let count = |of: &str| kept.iter().filter(|line| line.contains(of)).count();
        let (events, steps) = (count("\"event\":"), count("{\"step\":"));
        let counts = format!("{{\"end\":{{\"events\":{events},\"steps\":{steps}}}}}");
        let trace = kept.join("\n").replace(end, &counts);
        Trace::read(trace.as_bytes()).unwrap().replay(|_, _| {}).difference
    };
    assert_eq!(without(&|_| false), None);
    let is_step = |line: &&&str| line.starts_with("{\"step\"");
    let is_event = |line: &&&str| line.starts_with("{\"at\"");
    assert_eq!(without(&|line| **line == done).unwrap().replayed, "the call is not over");
    assert_eq!(without(&|line| is_step(line) || is_event(line)).unwrap().replayed, "the call is not over");
    assert!(without(&|line| is_step(line)).is_some());
}

/// No clock has said so, and nothing in a trace may stop whoever reads it
#[test]
fn a_clock_past_all_time_ends_like_any_other() {
    let memory = Memory::default();
    let overrides = Overrides::new().max_attempts(1);
    let mut drive = Drive::new(stream(), overrides, Recorder::new(memory.clone()));
    drive.request(0).receive(1, "HTTP/1.1 503 No\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n");
    let trace = text(&memory);
    let from = trace.find("\"unix_at_origin\":{\"secs\":").unwrap();
    let until = from + trace[from..].find(',').unwrap();
    let absurd = format!("{}\"unix_at_origin\":{{\"secs\":{}{}", &trace[..from], u64::MAX, &trace[until..]);
    let trace = Trace::read(absurd.as_bytes()).unwrap();
    assert!(trace.replay(|_, _| {}).outcome.is_some());
    assert!(trace.what_if(*trace.config()).is_ok());
}

#[test]
fn what_is_no_trace_is_refused_by_its_line() {
    let trace = recorded();
    let with = |line: &str| trace.replacen("{\"at\":5000000,\"event\":\"start\"}", line, 1);
    let lines = trace.lines().count();
    for (text, refused) in [
        (String::new(), "line 1: this is no trace"),
        ("\n".to_owned(), "line 1: this is no trace"),
        ("{\"name\":1}\n".to_owned(), "line 1: this is no trace"),
        (
            trace.replacen("\"trace\":1", "\"trace\":2", 1),
            "line 1: this is a trace of version 2, and only version 1",
        ),
        (trace.replacen("\"max_attempts\"", "\"max_atempts\"", 1), "line 1: there is no"),
        (
            trace.replacen("\"connect_timeout\":10.0", "\"connect_timeout\":-1", 1),
            "line 1: connect_timeout cannot be -1",
        ),
        (trace.replacen("openai-chat", "klingon", 1), "line 1: the dialect `klingon` is not known"),
        (trace.replacen("\"POST\"", "\"P T\"", 1), "line 1: the method"),
        (trace.replacen("http://h:80", "gopher://h", 1), "line 1: the URL cannot be read"),
        (
            trace.replacen("\"body_bytes\":2", "\"body_bytes\":18446744073709551615", 1),
            "line 1: a request of 18446744073709551615 bytes is more than the 1073741824",
        ),
        (with("{\"at\":5000000,\"event\":\"begin\"}"), "line 2: unknown variant `begin`"),
        (with("{\"event\":\"start\"}"), "line 2: missing field `at`"),
        (with("{\"at\":-1,\"event\":\"start\"}"), "line 2: "),
        (
            with("{\"at\":1,\"event\":\"received\",\"link\":1,\"bytes\":2,\"text\":\"a\"}"),
            "line 2: the bytes of the event",
        ),
        (
            with("{\"at\":1,\"event\":\"head\",\"link\":1,\"status\":7,\"headers\":[]}"),
            "line 2: no response has a head",
        ),
        (with("{\"note\":\"x\"}"), "line 2: the line is neither"),
        (with("junk"), "line 2: expected value"),
        (with("\u{0}"), "line 2: expected value"),
        (trace.replacen("{\"at\":5000000,\"event\":\"start\"}\n", "", 1), "line "),
        (
            format!("{trace}{{\"step\":\"connect\",\"link\":1}}\n"),
            &*format!("line {}: the trace has ended", lines + 1),
        ),
    ] {
        let message = refusal(&text);
        assert!(message.starts_with(refused), "{message}\nis not\n{refused}");
    }
    assert!(
        refusal(&trace.replacen("{\"at\":5000000,\"event\":\"start\"}\n", "", 1))
            .contains("lines are missing")
    );
}

#[test]
fn bodies_that_are_not_whole_cannot_be_replayed() {
    for bodies in [Bodies::Hashed, Bodies::Lengths] {
        let memory = Memory::default();
        answered(Recorder::new(memory.clone()).bodies(bodies));
        assert_eq!(
            refusal(&text(&memory)),
            format!(
                "line 1: bodies are not whole in this trace but recorded as {bodies}: only a trace of whole \
                 bodies can be replayed"
            )
        );
    }
}

#[test]
fn an_endless_file_is_refused_at_the_bound() {
    let endless = std::io::BufReader::new(std::io::repeat(b' '));
    let error = Trace::read(endless).unwrap_err();
    assert_eq!(error.to_string(), format!("line 1: the trace is larger than {} bytes", Trace::MAX_BYTES));
}

#[test]
fn the_call_of_a_trace_is_like_the_recorded_one() {
    let memory = Memory::default();
    let drive = answered(Recorder::new(memory.clone()));
    let trace = read(&memory);
    assert_eq!(trace.config(), drive.call.config());
    let (ours, theirs) = (drive.call.request(), trace.request());
    assert_eq!(
        (ours.origin(), ours.shape(), ours.dialect()),
        (theirs.origin(), theirs.shape(), theirs.dialect())
    );
    let mut call = trace.call();
    drop(crate::machine::Machine::handle(&mut call, Instant::ORIGIN, Event::Start).unwrap());
}
