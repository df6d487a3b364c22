//! What `--help` says beside the options: examples, output, settings, exit codes.

use std::fmt::Write as _;

use steadfast::config::{Field, RequestConfig};
use steadfast_relay::{Limit, RouteLimits};
use steadfast_sim::random::Coverage;

use crate::exit::Exit;
use crate::provider::PROFILES;

pub(crate) const CALL_EXAMPLES: &str = "\
Examples:
  steadfast call \"Say hello.\"
  steadfast call - < question.txt
  steadfast call --provider anthropic --timeline \"Say hello.\"
  steadfast call --base-url http://127.0.0.1:8080/v1 --model smollm2 \"Say hello.\"
  steadfast call --unix-socket /run/model.sock --tcp-keep-alive off \"Say hello.\"
  steadfast call --config-file steadfast.toml \"Say hello.\"
  steadfast call --config stream_idle_timeout=20 --config max_attempts=1 --json \"Say hello.\"
  steadfast call --record trace.jsonl --record-bodies lengths \"Say hello.\"
";

pub(crate) const CALLS_EXAMPLES: &str = "\
Examples:
  steadfast calls
  steadfast calls --database relay.db --follow
  steadfast calls --show req_0123456789abcdef
  steadfast calls --limit 1000 --json
  steadfast calls --export-trace req_0123456789abcdef | steadfast replay -
";

const CALLS_OUTPUT: &str = "\
Output:
  A row for each call, the newest one last: when it began, its id, whose key asked, what for, the status
  that the app got, how it ended (passed, served, a limit by its name, the relay's own error, broken,
  app_left, stopped; unfinished where it goes on or its relay was killed), how often it was sent, how long
  it took, and the sizes of its bodies. With --json, an object for each, with its heads and its timeline.

  With --show, the timeline, both heads and what was kept of the bodies; what is missing is said. With
  --json too, each body as a list of runs: offset, and text or base64.

  With --export-trace, the provider's answer as it came, as a client's call would have been told: one
  connection, the request, the head, the pieces of the body and their times. Of a request that was sent
  more than once it is the last send. No bound is in force in it: see `replay --what-if`.

  No credential is in a record: [credential] stands for it in heads, and as many other bytes in bodies.

";

pub(crate) const CONFIG_EXAMPLES: &str = "\
Examples:
  steadfast config
  steadfast config --config-file steadfast.toml --json
  STEADFAST_REQUEST_TIMEOUT=30 steadfast config --config max_attempts=1
";

const CONFIG_OUTPUT: &str = "\
Output:
  A row for each setting: its name, its value, and where that came from. With --json, an object for
  each: value, source (call, environment, file or built-in), and from (--config, the variable, or the
  file), where it is not built in.

";

const OUTPUT: &str = "\
Output:
  stdout has the text of the answer (or, with --json, the outcome and nothing else); stderr has all
  the rest, and on a terminal a live line. Reasoning, tool calls and usage are in --json only. On a
  terminal, control characters in the text are shown as pictures and not obeyed. A stdout that takes
  no more ends the call, with exit code 1, or 130 where a reader closed its pipe; one that was closed
  from the start (>&-) is as /dev/null.

";

pub(crate) const DECODE_EXAMPLES: &str = "\
Examples:
  steadfast decode --dialect openai-chat answer.sse
  steadfast decode --dialect anthropic --end open --config stream_idle_timeout=20 answer.sse
  steadfast decode --dialect gemini --status 429 --content-type application/json error.json
  curl -siN --raw --http1.1 https://… | steadfast decode --dialect ollama --http -
  steadfast decode --framing sse --split bytes answer.sse
  steadfast decode --http --raw --method HEAD response.txt
";

const DECODE_OUTPUT: &str = "\
Output:
  With --dialect, how the call machine ends on these bytes, as one JSON object: result, error (kind,
  message and what else there is to it), text, reasoning, tool_calls (id, name, arguments, complete),
  finish_reason, usage, choices (all but number 0, whose parts stand in the object itself), notes, and
  counts: events that could be read, unknown among them, and malformed ones, that could not. A refusal
  is in `refusal`, where there is one. Without --http the body is sent in one chunk; `cut` and `reset`
  leave out the last chunk. All bytes come at once, and time passes only after them.

  With --framing, a JSON line for each event (event, data, id, retry in milliseconds), then one with
  last_event_id and bytes; and with tail, what came of an event that did not end (event, data). An SSE
  event that no blank line ends is none, and no fault. A body that ends in the midst of an array, or of
  a line of NDJSON that is no JSON, is incomplete: the last line says so, and the exit code is 12.

  With --http --raw, the response as one JSON object: status, headers (name and value, in the order
  and case in which they came; trailers too), interim statuses, body (base64,
  as it came out of its transfer coding), outcome (complete, incomplete, error, upgrade), error_kind,
  keep_alive, trailers.

  --split never changes the output.

";

const SETTINGS_FROM: &str = "
  The first that gives a setting wins: --config max_attempts=1, in the order given, the last one first;
  the environment, STEADFAST_MAX_ATTEMPTS=1; the file, max_attempts = 1 in TOML. `steadfast config`
  prints what is in force. `demo` plays each scenario with its own settings over the defaults.
";

pub(crate) const DEMO_EXAMPLES: &str = "\
Examples:
  steadfast demo
  steadfast demo --list
  steadfast demo --only stream-mute-after-delta
  steadfast demo --driver all
";

pub(crate) const GAPS_EXAMPLES: &str = "\
Examples:
  steadfast gaps
  steadfast gaps --provider anthropic --runs 5
  steadfast gaps --base-url http://127.0.0.1:8080/v1 --model smollm2 --json
  steadfast gaps --base-url http://10.0.0.7:8080/v1 --tcp-user-timeout 20
";

const GAPS_OUTPUT: &str = "\
Output:
  For each stream: its chunks (reads from the connection), bytes, wall time and time to first byte; the
  largest gap between two chunks, where it lay, and what part of the idle bound in force it is; and how
  many gaps there were of each length. Then the verdict: a gap over 60 s says that the idle bound's
  default of 120 s is too near to what is healthy. With --json, one object: verdict (ok, gap_too_long,
  nothing_measured), idle_bound_seconds, largest_gap_seconds, runs.

  Each stream is one attempt, whose idle bound is 600 s and whose deadline is 1800 s where no --config says
  otherwise, so that a long gap is seen and not cut off. One that failed on its way counts as far as it
  came. A provider is asked for as much reasoning as it offers; the server at a --base-url is asked plainly.

";

pub(crate) fn gaps_long_help() -> String {
    format!("{GAPS_EXAMPLES}\n{GAPS_OUTPUT}{}\n{}", settings(), exit_codes())
}

pub(crate) const MOCK_EXAMPLES: &str = "\
Examples:
  steadfast mock --script tests/scenario/scenarios/stream-mute-after-delta.toml
  steadfast mock --script FILE --port 8099
";

pub(crate) const SERVE_EXAMPLES: &str = "\
Examples:
  steadfast serve
  steadfast serve --upstream openai --upstream anthropic --upstream gemini
  steadfast serve --upstream local=http://127.0.0.1:8080 --listen 127.0.0.1:0 --json
  steadfast serve --config relay.toml --check
  openssl rand -hex 32 | tee key | steadfast serve --hash-key
";

const SERVE_ABOUT: &str = "\
Apps:
  An SDK whose base URL was https://api.openai.com/v1 takes http://127.0.0.1:7071/openai/v1, and so for
  /anthropic, /gemini (v1beta) and every other upstream by its name. Its key goes through to the provider,
  unless the upstream has a key_env. Where [keys] are set, an app shows one in x-steadfast-key, or, where the
  upstream has a key_env, as the key that its SDK is given. With no file and no upstream, an embedded
  provider answers under all three.

File:
  listen, max_connections (to providers, 1024), max_app_connections (twice that), drain (30), share_port,
  without_keys; then tables. [upstream.NAME] has url, shape (whose errors the relay's own look like: openai,
  anthropic or gemini; by the name, or openai) and key_env (the variable that holds the key to use in place of
  the app's). [keys] has LABEL = \"sha256:…\".
  [tls] has certificate and key, two PEM files: then apps speak HTTPS, and plain text is refused.
  [recording] has database (a file, or postgres://user@host/name with the password there or in PGPASSWORD),
  max_age in seconds, max_bytes, max_queued_bytes, max_request_bytes, max_answer_first_bytes and
  max_answer_last_bytes; without it nothing is recorded.
  [limits] and [retries] hold for all upstreams, [upstream.NAME.limits] and [upstream.NAME.retries] for one.

Output:
  stdout has one line, `listening on http://127.0.0.1:7071`, or with --json an object: listening, base_url,
  upstreams. stderr has the rest.

Signals:
  SIGTERM and Ctrl-C: new calls get 503 gateway_draining, those that run go on for up to `drain` seconds, then
  it ends, with exit code 0, or 1 where some were cut off. A second one ends it at once, with exit code 130.
  SIGHUP: the file is read again, and those of [tls]. Calls that run go on as they began; a file that cannot be put in force is
  told on stderr, and what was in force stays.

";

pub(crate) fn serve_long_help() -> String {
    let mut help = format!("{SERVE_EXAMPLES}\n{SERVE_ABOUT}Limits, with their defaults:\n");
    let defaults = RouteLimits::default();
    for limit in Limit::ALL {
        let name = format!("{}.{}", limit.table(), limit.name());
        _ = writeln!(help, "  {name:<22} {:>8}  {}", defaults.get(limit), limit.about());
    }
    format!("{help}\n{}", exit_codes())
}

pub(crate) const SIM_EXAMPLES: &str = "\
Examples:
  steadfast sim --runs 200000 --seed 1
  steadfast sim --replay 4711
  steadfast sim --replay 4711 --json
";

pub(crate) const REPLAY_EXAMPLES: &str = "\
Examples:
  steadfast call --record trace.jsonl \"Say hello.\"
  steadfast replay trace.jsonl
  steadfast replay --what-if stream_idle_timeout=300 trace.jsonl
  steadfast replay --what-if request_timeout=5 --what-if max_attempts=1 --json trace.jsonl
";

const REPLAY_OUTPUT: &str = "\
Output:
  Each event that the call was told, with its time, and each step that it then took, as they stand in the
  trace; then the timeline, and whether every step was the recorded one. The first that was not is shown
  with its line, as recorded and as replayed, and the exit code is 4. With --json, one object: identical,
  trace (whole, truncated, cut), events, steps, difference, timeline.

  With --what-if, how the recorded call ended and how it would have: what came over a connection comes as
  long after that was asked for as it did, and the deadlines are the new ones. Where the trace ends before
  the call would, that is said, and what would happen if nothing more came. With --json: recorded, and
  what_if (ends: ended, another_connection or endless; at, known_until, outcome).

";

pub(crate) fn sim_long_help() -> String {
    let enough = Coverage::MIN_RUNS;
    format!(
        "{SIM_EXAMPLES}
Output:
  What the runs came to, then how often each fault and each transition of the call machine was met, and the
  first violations with the commands that play them again. Each call has a twin, which is told the same and
  has to take the same steps; it is not counted. With --json, one object.

  A fault or a transition that was never met is a failure as a violation is: stderr names it, and the exit
  code is 1. {enough} runs meet every one, fewer may not. A run that is played alone has no such table.

  With --replay or --tape, the plan, every event and step, and a digest of them. With --json, one object:
  violation (or null), outcomes, digest, and the shortest run that breaks the same (or null).

{}",
        exit_codes()
    )
}

pub(crate) fn replay_long_help() -> String {
    format!("{REPLAY_EXAMPLES}\n{REPLAY_OUTPUT}{}\n{}", settings(), exit_codes())
}

pub(crate) fn call_long_help() -> String {
    let mut help = format!("{CALL_EXAMPLES}\nProviders:\n");
    for profile in &PROFILES {
        let keys = profile.keys.join(" or ");
        _ = writeln!(help, "  {:<10} {} [{}; {keys}]", profile.name, profile.base_url(), profile.model);
    }
    help.push_str(
        "  With no base URL and no key at all, an embedded provider answers in that API's form.\n\n",
    );
    format!("{help}{OUTPUT}{}\n{}", settings(), exit_codes())
}

pub(crate) fn calls_long_help() -> String {
    format!("{CALLS_EXAMPLES}\n{CALLS_OUTPUT}{}", exit_codes())
}

pub(crate) fn config_long_help() -> String {
    format!("{CONFIG_EXAMPLES}\n{CONFIG_OUTPUT}{}\n{}", settings(), exit_codes())
}

pub(crate) fn decode_long_help() -> String {
    format!("{DECODE_EXAMPLES}\n{DECODE_OUTPUT}{}\n{}", settings(), exit_codes())
}

fn settings() -> String {
    let mut help = String::from("Settings (--config), with their defaults:\n");
    let defaults = RequestConfig::default();
    for field in Field::ALL {
        _ = writeln!(help, "  {:<22} {:>8}  {}", field.name(), defaults.get(field), field.about());
    }
    help + SETTINGS_FROM
}

pub(crate) fn exit_codes() -> String {
    let mut help = String::from("Exit codes:\n");
    for exit in Exit::ALL {
        _ = writeln!(help, "  {:>3}  {}", exit.code(), exit.meaning());
    }
    help
}
