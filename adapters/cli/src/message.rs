//! What the program says on stderr.

use std::fmt::Display;
use std::io::{self, Write};

use steadfast::outcome::Billing;
use steadfast_tokio::{Completion, Ending, ErrorKind, Outcome};

/// Says something on stderr, in one line
pub(crate) fn say(what: impl Display) {
    // Nobody is left to be told that stderr is gone.
    _ = writeln!(io::stderr(), "steadfast: {}", one_line(&what.to_string()));
}

/// Says something of several lines on stderr
pub(crate) fn say_as_is(what: impl Display) {
    _ = writeln!(io::stderr(), "{what}");
}

/// What a call that is not whole came to: what failed, how long it took, what it may have cost, and
/// what would help; none for one that is whole
pub(crate) fn failure(outcome: &Outcome) -> Option<String> {
    let attempts = match outcome.timeline.attempt_count() {
        1 => "1 attempt".to_owned(),
        count => format!("{count} attempts"),
    };
    let took = format!("{attempts} in {:.2} s", outcome.timeline.elapsed().as_secs_f64());
    let error = match &outcome.result {
        Ok(Completion { ending: Ending::Completed, .. }) => return None,
        Ok(Completion { ending: Ending::Incomplete(reason), .. }) => {
            return Some(format!("incomplete: the provider ended the answer early: {reason} · {took}"));
        }
        Err(error) => error,
    };
    let mut said = error.kind.name().replace('_', "-");
    if error.kind != ErrorKind::Cancelled {
        said.push_str(&format!(": {error}"));
    }
    if let ErrorKind::Timeout(timeout) = &error.kind {
        said.push_str(&format!(" (--config {}=SECONDS)", timeout.setting));
    }
    said.push_str(&format!(" · {took} · {}", cost(error.billing)));
    if let Some(pause) = error.retry_after {
        said.push_str(&format!(" · the server asks to wait {} s", pause.as_secs_f64()));
    }
    Some(said)
}

const fn cost(billing: Billing) -> &'static str {
    match billing {
        Billing::NotSent => "nothing was sent, so nothing is billed",
        Billing::MaybeBilled => "the request may have been billed",
        Billing::Delivered => "part of the answer was delivered, and may have been billed",
    }
}

/// The text in one line: a peer's words can neither break it nor command the terminal
fn one_line(text: &str) -> String {
    let words = text.split(|character: char| character.is_control() || character == ' ');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_says_stays_in_one_line() {
        assert_eq!(one_line("no\r\n  \u{1b}[31mway\u{9b}2J\t. "), "no [31mway 2J .");
    }
}
