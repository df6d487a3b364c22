//! The calls that the pages show: those under way, and those that were last over.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use steadfast::http::StatusCode;
use steadfast::outcome::{Reason, Span};
use steadfast::relay::{Ending, Exchanged, Gap, Limits, Progress, State};
use steadfast::time::Instant;

use super::metrics::Metrics;

/// How many calls under way are shown at once; those past it are counted, and shown once they are over
pub const MAX_LIVE_CALLS: usize = 4096;

/// How many calls that are over are kept to be shown
pub const MAX_RECENT_CALLS: usize = 500;

/// How much of a path or of an agent's name is kept: 200 characters
const MAX_TEXT_CHARS: usize = 200;

/// What the pages show
pub(crate) struct Watch {
    live: Mutex<BTreeMap<u64, Arc<Mutex<Shown>>>>,
    recent: Mutex<VecDeque<Arc<Shown>>>,
    last: AtomicU64,
    not_shown: AtomicU64,
    pub(super) metrics: Metrics,
}

/// One call, as it is shown
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) number: u64,
    pub(super) request_id: String,
    pub(super) method: String,
    /// Without its query, which may hold a key
    pub(super) path: String,
    pub(super) agent: String,
    pub(super) app: Option<Arc<str>>,
    pub(super) route: Option<Arc<str>>,
    pub(super) limits: Option<Limits>,
    /// When it began, since 1970
    pub(super) wall: Duration,
    pub(super) began: Instant,
    pub(super) state: State,
    pub(super) since: Instant,
    pub(super) status: Option<StatusCode>,
    pub(super) sends: u32,
    pub(super) request_bytes: u64,
    pub(super) answer_bytes: u64,
    /// When a part of the answer last reached the app
    pub(super) last_part: Instant,
    pub(super) longest_gap: Option<Gap>,
    pub(super) spans: Vec<Span>,
    pub(super) over: Option<(Ending, Instant)>,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            live: Mutex::default(),
            recent: Mutex::default(),
            last: AtomicU64::new(0),
            not_shown: AtomicU64::new(0),
            metrics: Metrics::new(),
        }
    }

    /// Calls under way that are shown, and how many were not
    pub(super) fn counts(&self) -> (usize, u64) {
        (locked(&self.live).len(), self.not_shown.load(Ordering::Relaxed))
    }

    /// All calls, the latest first: those under way, then those that are over
    pub(super) fn all(&self) -> Vec<Shown> {
        let live: Vec<_> = locked(&self.live).values().rev().cloned().collect();
        let live = live.iter().map(|call| locked(call).clone());
        let recent: Vec<_> = locked(&self.recent).iter().rev().cloned().collect();
        live.chain(recent.iter().map(|call| (**call).clone())).collect()
    }

    /// The call of this number, while it is shown
    pub(super) fn find(&self, number: u64) -> Option<Shown> {
        let live = locked(&self.live).get(&number).cloned();
        if let Some(call) = live {
            return Some(locked(&call).clone());
        }
        locked(&self.recent).iter().find(|call| call.number == number).map(|call| (**call).clone())
    }

    fn begin(&self, progress: &Progress<'_>, now: Instant) -> (u64, Arc<Mutex<Shown>>) {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let shown = Arc::new(Mutex::new(Shown::new(number, progress, now)));
        let mut live = locked(&self.live);
        if live.len() < MAX_LIVE_CALLS {
            live.insert(number, shown.clone());
        } else {
            self.not_shown.fetch_add(1, Ordering::Relaxed);
        }
        (number, shown)
    }

    fn over(&self, number: u64, shown: Shown) {
        let mut recent = locked(&self.recent);
        if recent.len() >= MAX_RECENT_CALLS {
            recent.pop_front();
        }
        recent.push_back(Arc::new(shown));
        drop(recent);
        locked(&self.live).remove(&number);
    }
}

/// Follows the calls of one connection, one after the other
///
/// Each step costs a lock that nobody else holds, unless a page is being made, and a few numbers.
pub(crate) struct Follower {
    watch: Arc<Watch>,
    current: Option<(u64, Arc<Mutex<Shown>>)>,
}

impl Follower {
    pub(crate) fn new(watch: Arc<Watch>) -> Self {
        Self { watch, current: None }
    }

    /// Something may have happened
    pub(crate) fn step(&mut self, progress: &Progress<'_>, now: Instant) {
        match &self.current {
            Some((_, shown)) => locked(shown).update(progress),
            None if is_under_way(progress) => self.current = Some(self.watch.begin(progress, now)),
            None => {}
        }
    }

    /// The call is over
    pub(crate) fn over(&mut self, progress: &Progress<'_>, exchanged: &Exchanged, now: Instant) {
        self.watch.metrics.over(exchanged);
        let current = self.current.take();
        if exchanged.ending == Ending::Served {
            return;
        }
        let (number, shown) = current.unwrap_or_else(|| self.watch.begin(progress, now));
        let mut shown = locked(&shown).clone();
        shown.update(progress);
        shown.spans.clone_from(&exchanged.timeline.spans);
        shown.longest_gap = exchanged.longest_gap;
        shown.over = Some((exchanged.ending, exchanged.timeline.ended));
        self.watch.over(number, shown);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some((number, _)) = self.current.take() {
            locked(&self.watch.live).remove(&number);
        }
    }
}

impl Shown {
    fn new(number: u64, progress: &Progress<'_>, now: Instant) -> Self {
        let request = progress.request;
        let began = progress.began.unwrap_or(now);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let agent = request.and_then(|request| request.fields.get("user-agent")).unwrap_or_default();
        let mut shown = Self {
            number,
            request_id: progress.request_id.to_owned(),
            method: request.map(|request| request.method.to_string()).unwrap_or_default(),
            path: request.map(|request| short(before_query(&request.target))).unwrap_or_default(),
            agent: short(&String::from_utf8_lossy(agent)),
            app: progress.app.cloned(),
            route: progress.route.map(|(name, _)| name.clone()),
            limits: progress.route.map(|(_, limits)| *limits),
            wall: wall.saturating_sub(now - began),
            began,
            state: progress.state,
            since: progress.since,
            status: None,
            sends: 0,
            request_bytes: 0,
            answer_bytes: 0,
            last_part: progress.last_part,
            longest_gap: None,
            spans: Vec::new(),
            over: None,
        };
        shown.update(progress);
        shown
    }

    fn update(&mut self, progress: &Progress<'_>) {
        self.state = progress.state;
        self.since = progress.since;
        self.status = progress.status;
        self.sends = progress.sends;
        self.request_bytes = progress.request_bytes;
        self.answer_bytes = progress.answer_bytes;
        self.last_part = progress.last_part;
        self.longest_gap = progress.longest_gap;
        let spans = &progress.timeline.spans;
        if self.spans.len() < spans.len() {
            self.spans.extend_from_slice(&spans[self.spans.len()..]);
        }
    }

    /// When it ended, or now
    pub(super) fn until(&self, now: Instant) -> Instant {
        self.over.map_or(now, |(_, ended)| ended)
    }

    /// The limit that ended it
    pub(super) fn limit(&self) -> Option<&'static str> {
        match self.over?.0 {
            Ending::Limit(limit) => Some(limit.name()),
            Ending::Refused(_) => {
                let Reason::Bound(limit) = self.spans.last()?.reason else { return None };
                Some(limit)
            }
            Ending::Passed | Ending::Served | Ending::Broken | Ending::AppLeft | Ending::Stopped => None,
        }
    }
}

/// Whether it is a call whose end will be told, and not one to the relay itself
fn is_under_way(progress: &Progress<'_>) -> bool {
    use State::{Answering, Connecting, Pausing, Waiting};
    progress.request.is_some() && matches!(progress.state, Connecting | Waiting | Pausing | Answering)
}

fn before_query(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

fn short(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use steadfast::relay::{Exchange, Routes};

    use super::*;

    #[test]
    fn calls_past_the_bounds_are_counted_and_not_kept() {
        let watch = Watch::new();
        let routes = Arc::new(Routes::new(Vec::new(), &[]).unwrap());
        let exchange = Exchange::new(routes, false, 7, Instant::ORIGIN);
        let progress = Progress { state: State::Connecting, ..exchange.progress() };
        let begun = |_| watch.begin(&progress, Instant::ORIGIN);
        let calls: Vec<_> = (0..MAX_LIVE_CALLS + 3).map(begun).collect();
        assert_eq!(watch.counts(), (MAX_LIVE_CALLS, 3));
        for (number, shown) in &calls {
            watch.over(*number, locked(shown).clone());
        }
        assert_eq!(watch.counts(), (0, 3));
        let kept: Vec<_> = watch.all().iter().map(|call| call.number).collect();
        let last = calls.len() as u64;
        assert_eq!(kept, (last - MAX_RECENT_CALLS as u64 + 1..=last).rev().collect::<Vec<_>>());
        assert!(watch.find(last).is_some() && watch.find(1).is_none());
    }
}
