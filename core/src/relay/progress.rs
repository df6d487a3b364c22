//! What is known of an exchange that goes on.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::event::State;
use super::limits::Limits;
use super::{Current, Exchange};
use crate::http1::IncomingRequest;
use crate::outcome::Timeline;
use crate::time::Instant;

/// A time in which no part of an answer reached the app
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When the part before it reached the app, or the head of the answer came
    pub began: Instant,
    /// How long it lasted
    pub lasted: Duration,
}

/// What is known of an exchange that goes on
#[derive(Clone, Copy, Debug)]
pub struct Progress<'p> {
    /// Where it is
    pub state: State,
    /// Since when it is there
    pub since: Instant,
    /// When its first byte came
    pub began: Option<Instant>,
    /// Its id, as it stands in answers of the relay's own
    pub request_id: &'p str,
    /// The request, once its head is whole
    pub request: Option<&'p IncomingRequest>,
    /// The label of the key that the app showed, where the relay asks for one
    pub app: Option<&'p Arc<str>>,
    /// The name of its route, and the bounds that it gave
    pub route: Option<(&'p Arc<str>, &'p Limits)>,
    /// The status that the app gets, where it is known
    pub status: Option<StatusCode>,
    /// How often the request was sent, in part at least
    pub sends: u32,
    /// Bytes of body from the app
    pub request_bytes: u64,
    /// Bytes of body from the provider, of the answer that is passed on
    pub answer_bytes: u64,
    /// When a part of the answer last reached the app, or its head came
    pub last_part: Instant,
    /// The longest time until then in which none did
    pub longest_gap: Option<Gap>,
    /// Attempts, waits and phases that are over
    pub timeline: &'p Timeline,
}

impl Exchange {
    /// What is known of the exchange under way, or of the one that was just over
    pub fn progress(&self) -> Progress<'_> {
        let Current { state, since, began, request_id, status, sends, answer_bytes, .. } = &self.current;
        let route = self.current.route.map(|route| (self.routes.get(route).name(), &self.current.limits));
        Progress {
            state: *state,
            since: *since,
            began: *began,
            request_id,
            request: self.current.request.as_deref(),
            app: self.current.key.as_ref().map(|key| &key.label),
            route,
            status: *status,
            sends: *sends,
            request_bytes: self.current.body.payload(),
            answer_bytes: *answer_bytes,
            last_part: self.current.last_part,
            longest_gap: self.current.longest_gap,
            timeline: &self.current.timeline,
        }
    }

    /// Notes how long no part of the provider's answer has reached the app until now
    pub(super) fn note_gap(&mut self) {
        let Current { passing: Some(_), last_part, longest_gap, .. } = &mut self.current else { return };
        let gap = Gap { began: *last_part, lasted: self.now - *last_part };
        if longest_gap.is_none_or(|longest| longest.lasted < gap.lasted) {
            *longest_gap = Some(gap);
        }
    }
}
