//! The results for people: a table, the waterfalls of the most telling calls, and what differs.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use steadfast_scenario::{Expect, Observed, Scenario};
use steadfast_suite::{Difference, Played};

/// The calls whose waterfalls tell most, where they were played
const TELLING: [&str; 5] = [
    "status-503-then-200-stream",
    "overload-before-delta",
    "deadline-shared",
    "stream-mute-after-delta",
    "chat-end-then-held",
];
/// No more waterfalls are drawn
const MOST_WATERFALLS: usize = 5;
/// What a server did is cut to so many characters; all of it is in `--list`
const WIDEST_ABOUT: usize = 46;

pub(super) const GREEN: &str = "\x1b[32m";
pub(super) const RED: &str = "\x1b[31m";
pub(super) const PLAIN: &str = "\x1b[0m";

const HEAD: [&str; 8] = ["", "scenario", "the server", "expected", "got", "elapsed", "attempts", "billing"];

/// The names, with what the servers do
pub(super) fn list(scenarios: &[&Scenario]) -> String {
    let widest = scenarios.iter().map(|scenario| scenario.name().len()).max().unwrap_or_default();
    let line = |scenario: &&Scenario| format!("{:<widest$}  {}\n", scenario.name(), scenario.about());
    scenarios.iter().map(line).collect()
}

/// All results
pub(super) fn results(played: &[Played], elapsed: Duration, coloured: bool) -> String {
    let rows: Vec<[String; HEAD.len()]> = played.iter().map(row).collect();
    let mut widths = HEAD.map(width);
    for row in &rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
    }
    let mut text = line(&HEAD.map(str::to_owned), &widths);
    for (row, played) in rows.iter().zip(played) {
        let line = line(row, &widths);
        text.push_str(&match (coloured, played.agrees()) {
            (false, _) => line,
            (true, true) => line.replacen(&row[0], &format!("{GREEN}{}{PLAIN}", row[0]), 1),
            (true, false) => line.replacen(&row[0], &format!("{RED}{}{PLAIN}", row[0]), 1),
        });
    }
    for played in telling(played) {
        if let Some((observed, outcome)) = played.calls.first() {
            let (name, about, end) = (played.scenario.name(), played.scenario.about(), end(observed));
            _ = write!(text, "\n{name}: {about} -> {end}\n{}\n", outcome.timeline);
        }
    }
    text.push('\n');
    told_apart(&mut text, played);
    let agree = played.iter().filter(|played| played.agrees()).count();
    let (count, took) = (played.len(), elapsed.as_secs_f64());
    _ = writeln!(text, "{agree} of {count} scenarios ended as they must, in {took:.1} s");
    text
}

/// Adds what was played again, and what differs
pub(super) fn told_apart(text: &mut String, played: &[Played]) {
    for played in played {
        let (name, driver, plays) = (played.scenario.name(), played.driver, played.plays);
        if plays > 1 {
            _ = writeln!(
                text,
                "{name} was played {plays} times on {driver}, as this machine was too busy for its server's times"
            );
        }
        for difference in &played.differences {
            _ = writeln!(text, "DIFFERS  {name} on {driver}{}", describe(difference));
        }
    }
}

fn describe(Difference { call, mismatch }: &Difference) -> String {
    match call {
        Some(call) => format!(", call {call}: {mismatch}"),
        None => format!(": {mismatch}"),
    }
}

/// The most telling scenarios; the first ones where none of those was played
fn telling(played: &[Played]) -> Vec<&Played> {
    let find = |name| played.iter().find(|played| played.scenario.name() == name);
    let found: Vec<&Played> = TELLING.into_iter().filter_map(find).collect();
    if found.is_empty() { played.iter().take(MOST_WATERFALLS).collect() } else { found }
}

fn row(played: &Played) -> [String; HEAD.len()] {
    let Played { scenario, calls, .. } = played;
    let expected = scenario.expect.iter().map(|expect| (expect.times as usize, expected_end(expect)));
    let observed = || calls.iter().map(|(observed, _)| observed);
    let attempts: u32 = observed().map(|observed| observed.attempts).sum();
    [
        if played.agrees() { "ok" } else { "DIFFERS" }.to_owned(),
        scenario.name().to_owned(),
        cut(scenario.about()),
        grouped(if scenario.call.calls == 1 {
            vec![(1, expected_end(scenario.expected(0)))]
        } else {
            expected.collect()
        }),
        grouped(observed().map(|observed| (1, end(observed))).collect()),
        elapsed(scenario, calls.iter().map(|(observed, _)| observed)),
        attempts.to_string(),
        grouped(
            observed().filter_map(|observed| observed.billing).map(|billing| (1, word(&billing))).collect(),
        ),
    ]
}

fn expected_end(expect: &Expect) -> String {
    words(word(&expect.result), expect.phase.map(|phase| word(&phase)), expect.status)
}

fn end(observed: &Observed) -> String {
    words(word(&observed.result), observed.phase.map(|phase| word(&phase)), observed.status)
}

fn words(result: String, phase: Option<String>, status: Option<u16>) -> String {
    let more = phase.or_else(|| status.map(|status| status.to_string()));
    more.map(|more| format!("{result} {more}")).unwrap_or(result)
}

/// How long the slowest call took, against the bound that fired, or else the most it may take
pub(super) fn elapsed<'a>(scenario: &Scenario, calls: impl Iterator<Item = &'a Observed>) -> String {
    let numbered = calls.zip(0..);
    let slowest = numbered.max_by_key(|(observed, _)| observed.waited.unwrap_or(observed.elapsed));
    let Some((observed, number)) = slowest else { return String::new() };
    let took = observed.waited.unwrap_or(observed.elapsed).as_secs_f64();
    let expect = scenario.expected(number);
    match (observed.limit, expect.max_elapsed) {
        (Some(limit), _) => format!("{took:.3} s, bound {:.3}", limit.as_secs_f64()),
        (None, Some(most)) => format!("{took:.3} s, at most {:.1}", most.as_secs_f64()),
        (None, None) => format!("{took:.3} s"),
    }
}

/// The words, with those that are the same in a row as one
fn grouped(words: Vec<(usize, String)>) -> String {
    let mut groups: Vec<(usize, String)> = Vec::new();
    for (times, word) in words {
        match groups.last_mut() {
            Some((count, last)) if *last == word => *count += times,
            Some(_) | None => groups.push((times, word)),
        }
    }
    let group = |(count, word): &(usize, String)| match count {
        1 => word.clone(),
        count => format!("{count}x {word}"),
    };
    groups.iter().map(group).collect::<Vec<_>>().join(", ")
}

/// A scenario's word as its file has it
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => panic!("not a word: {other:?}"),
    }
}

fn cut(text: &str) -> String {
    if width(text) <= WIDEST_ABOUT {
        return text.to_owned();
    }
    let kept: String = text.chars().take(WIDEST_ABOUT - 1).collect();
    format!("{}…", kept.trim_end())
}

fn line(cells: &[String; HEAD.len()], widths: &[usize; HEAD.len()]) -> String {
    let mut line = String::new();
    for (cell, widest) in cells.iter().zip(widths) {
        line.push_str(cell);
        line.push_str(&" ".repeat(widest - width(cell) + 2));
    }
    format!("{}\n", line.trim_end())
}

pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_telling_call_is_there_to_be_told() {
        for name in TELLING {
            assert!(steadfast_scenario::find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn what_is_the_same_in_a_row_is_said_once() {
        let words = [(20, "timeout"), (1, "completed"), (1, "completed")];
        let words = words.map(|(times, word)| (times, word.to_owned())).into();
        assert_eq!(grouped(words), "20x timeout, 2x completed");
    }

    #[test]
    fn long_words_of_a_server_are_cut_between_characters() {
        assert_eq!(cut("é, short"), "é, short");
        let cut = cut(&"é".repeat(60));
        assert_eq!((width(&cut), cut.ends_with("é…")), (WIDEST_ABOUT, true));
    }
}
