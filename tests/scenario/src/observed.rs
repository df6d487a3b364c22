//! What a run showed, and where it differs from what was expected.

use std::time::Duration;

use serde::Serialize;

use crate::scenario::{Billing, End, Expect, Phase, Scenario, Seen};

/// How one call ended, as the one who ran it saw it
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The kind of end
    pub result: End,
    /// Which bound fired
    pub phase: Option<Phase>,
    /// The error's limit
    pub limit: Option<Duration>,
    /// The error's own measure of how long it waited
    pub waited: Option<Duration>,
    /// The status of a failed answer
    pub status: Option<u16>,
    /// The body of a failed answer
    pub body: Option<String>,
    /// The provider's word for why it stopped
    pub finish_reason: Option<String>,
    /// Text of the turn, partial where the call failed
    pub text: String,
    /// Tokens of the answer
    pub output_tokens: Option<u64>,
    /// Attempts made
    pub attempts: u32,
    /// What the failure may have cost
    pub billing: Option<Billing>,
    /// From the call's start to its end
    pub elapsed: Duration,
    /// From the call's start to the delivery of its completed turn
    pub turn_at: Option<Duration>,
}

/// What a server saw of all connections together
///
/// A server learns of a close later than the caller has done it: wait for what is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Connections accepted
    pub connections: u32,
    /// Requests whose head came
    pub requests: u32,
    /// For how long its sending was held up by peers that did not read
    pub blocked: Duration,
    /// Bytes that it read
    pub received: u64,
    /// Connections whose close by the peer it saw
    pub closed_by_peer: u32,
}

/// One way in which a run differs from its scenario
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{field}: expected {expected}, got {got}")]
pub struct Mismatch {
    /// The field of the file, such as `limit`
    pub field: &'static str,
    /// What the file says
    pub expected: String,
    /// What was seen
    pub got: String,
}

impl Scenario {
    /// Where the end of call number `call`, from 0, differs from what was expected
    ///
    /// `tolerance` is that of the run: [`Scenario::tolerance`] on sockets, zero under virtual time.
    ///
    /// # Panics
    ///
    /// As [`Scenario::expected`].
    pub fn check(&self, call: u32, observed: &Observed, tolerance: Duration) -> Vec<Mismatch> {
        self.expected(call).check(observed, tolerance)
    }
}

impl Expect {
    /// Where an end differs from this one; `tolerance` as for [`Scenario::check`]
    pub fn check(&self, observed: &Observed, tolerance: Duration) -> Vec<Mismatch> {
        let mut found = Found(Vec::new());
        found.equal("result", Some(&self.result), Some(&observed.result));
        found.equal("phase", self.phase.as_ref(), observed.phase.as_ref());
        found.equal("limit", self.limit.as_ref(), observed.limit.as_ref());
        if let Some(limit) = self.limit {
            found.within("limit", Some(limit), Some(limit + tolerance), observed.waited);
        }
        found.equal("status", self.status.as_ref(), observed.status.as_ref());
        found.equal("body", self.body.as_ref(), observed.body.as_ref());
        found.equal("finish_reason", self.finish_reason.as_ref(), observed.finish_reason.as_ref());
        found.equal("text", self.text.as_ref(), Some(&observed.text));
        found.equal("text_bytes", self.text_bytes.as_ref(), Some(&(observed.text.len() as u64)));
        found.equal("output_tokens", self.output_tokens.as_ref(), observed.output_tokens.as_ref());
        found.equal("attempts", self.attempts.as_ref(), Some(&observed.attempts));
        found.equal("billing", self.billing.as_ref(), observed.billing.as_ref());
        found.within("min_elapsed", self.min_elapsed, None, Some(observed.elapsed));
        found.within("max_elapsed", None, self.max_elapsed, Some(observed.elapsed));
        found.within("max_turn_at", None, self.max_turn_at, observed.turn_at);
        found.0
    }
}

impl Seen {
    /// Where what a server saw differs from this
    pub fn check(&self, tally: &Tally) -> Vec<Mismatch> {
        let mut found = Found(Vec::new());
        found.equal("connections", self.connections.as_ref(), Some(&tally.connections));
        found.equal("requests", self.requests.as_ref(), Some(&tally.requests));
        found.within("min_blocked", self.min_blocked, None, Some(tally.blocked));
        found.within("max_received", None, self.max_received, Some(tally.received));
        found.equal("closed_by_peer", self.closed_by_peer.as_ref(), Some(&tally.closed_by_peer));
        found.0
    }
}

struct Found(Vec<Mismatch>);

impl Found {
    fn equal<T: PartialEq + std::fmt::Debug>(
        &mut self,
        field: &'static str,
        expected: Option<&T>,
        got: Option<&T>,
    ) {
        if let Some(expected) = expected
            && got != Some(expected)
        {
            self.add(field, format!("{expected:?}"), got);
        }
    }

    fn within<T>(&mut self, field: &'static str, least: Option<T>, most: Option<T>, got: Option<T>)
    where
        T: PartialOrd + std::fmt::Debug + Copy,
    {
        let low = least.is_some_and(|least| got.is_none_or(|got| got < least));
        let high = most.is_some_and(|most| got.is_none_or(|got| got > most));
        if low || high {
            let bounds =
                [least.map(|least| format!(">= {least:?}")), most.map(|most| format!("<= {most:?}"))];
            let expected = bounds.into_iter().flatten().collect::<Vec<_>>().join(" and ");
            self.add(field, expected, got.as_ref());
        }
    }

    fn add<T: std::fmt::Debug>(&mut self, field: &'static str, expected: String, got: Option<&T>) {
        let got = got.map_or_else(|| "nothing".to_owned(), |got| format!("{got:?}"));
        self.0.push(Mismatch { field, expected, got });
    }
}
