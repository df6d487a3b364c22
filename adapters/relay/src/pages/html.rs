//! The pages as HTML: all calls, and one. What is put in is escaped by the templates.

use std::collections::BTreeSet;
use std::time::Duration;

use maud::{DOCTYPE, Markup, html};
use steadfast::outcome::SpanKind;
use steadfast::relay::{Ending, Limits, State};
use steadfast::time::{Bound, Instant};

use super::calls::Shown;

/// How wide a waterfall is, in units of its own
const WIDTH: f64 = 1000.0;

/// Which calls are asked for, by the query; an empty text asks for all
#[derive(Debug, Default, PartialEq)]
pub(super) struct Filter {
    route: String,
    app: String,
    ending: String,
    status: String,
}

impl Filter {
    pub(super) fn of(query: &str) -> Self {
        let mut filter = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "route" => filter.route = value.into_owned(),
                "app" => filter.app = value.into_owned(),
                "ending" => filter.ending = value.into_owned(),
                "status" => filter.status = value.trim().to_owned(),
                _ => {}
            }
        }
        filter
    }

    fn takes(&self, call: &Shown) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        is(&self.route, call.route.as_deref().unwrap_or_default())
            && is(&self.app, call.app.as_deref().unwrap_or_default())
            && is(&self.ending, ending(call))
            && is(&self.status, call.status.as_ref().map_or("", |status| status.as_str()))
    }
}

/// All calls that the filter takes
pub(super) fn calls(all: &[Shown], filter: &Filter, note: &str, now: Instant) -> String {
    let choices = |of: fn(&Shown) -> Option<&str>| all.iter().filter_map(of).collect::<BTreeSet<_>>();
    let taken: Vec<_> = all.iter().filter(|call| filter.takes(call)).collect();
    let live = taken.iter().filter(|call| call.over.is_none()).count();
    let content = html! {
        h1 { "steadfast relay" }
        p class="dim" { (live) " live, " (taken.len() - live) " recent" @if !note.is_empty() { " · " (note) } }
        form method="get" action="/_steadfast/" {
            (choice("route", &filter.route, choices(|call| call.route.as_deref())))
            (choice("app", &filter.app, choices(|call| call.app.as_deref())))
            (choice("ending", &filter.ending, choices(|call| Some(ending(call)))))
            label { "status" input name="status" value=(filter.status) inputmode="numeric" maxlength="3"; }
            button { "Filter" }
            a href="/_steadfast/" { "All" }
        }
        (legend())
        table {
            thead { tr {
                th scope="col" { "Began" } th scope="col" { "Call" } th scope="col" { "State" }
                th scope="col" { "Status" } th scope="col" class="bars" { "Waterfall" }
                th scope="col" class="number" { "Time" } th scope="col" class="number" { "Largest gap" }
                th scope="col" class="number" { "Answer" }
            } }
            tbody {
                @for call in &taken { (row(call, now)) }
                @if taken.is_empty() { tr { td colspan="8" class="dim" { "No call yet that fits." } } }
            }
        }
    };
    page("steadfast relay", true, &content)
}

/// One call
pub(super) fn call(call: &Shown, now: Instant) -> String {
    let lasted = call.until(now) - call.began;
    let limits = call.limits.map(|limits| in_force(call, &limits, now)).unwrap_or_default();
    let content = html! {
        p { a href="/_steadfast/" { "All calls" } }
        h1 class="path" { (call.method) " " (call.path) }
        (legend())
        (waterfall(call, now))
        dl {
            dt { "request id" } dd { (call.request_id) }
            dt { "began" } dd { (time_of_day(call.wall)) " UTC" }
            dt { "state" } dd { (state(call)) }
            dt { "route" } dd { (call.route.as_deref().unwrap_or("none")) }
            dt { "app" } dd { (call.app.as_deref().unwrap_or("no key asked for")) }
            dt { "user agent" } dd { (call.agent) }
            dt { "status" } dd { @if let Some(status) = call.status { (status.as_str()) } @else { "none yet" } }
            dt { "sends" } dd { (call.sends) }
            dt { "request body" } dd { (size(call.request_bytes)) }
            dt { "answer body" } dd { (size(call.answer_bytes)) }
            dt { "time" } dd { (seconds(lasted)) }
        }
        @if !limits.is_empty() {
            h2 { "Limits in force" }
            table {
                thead { tr { th scope="col" { "Limit" } th scope="col" { "Used" } th scope="col" { "Of" } th scope="col" { "" } } }
                tbody { @for (name, used, bound) in &limits { tr {
                    td class=[(call.limit() == Some(name)).then_some("bad")] { (name) }
                    td { (used.map_or_else(|| "not begun".to_owned(), seconds)) }
                    td { @match bound { Bound::Limited(limit) => (seconds(*limit)), Bound::Unbounded => "no limit" } }
                    td { @if let (Bound::Limited(limit), Some(used)) = (bound, used) {
                        meter aria-label=(format!("{name} used")) min="0" max=(limit.as_secs_f64()) value=(used.as_secs_f64()) {}
                    } }
                } } }
            }
        }
        h2 { "Timeline" }
        table {
            thead { tr {
                th scope="col" { "Attempt" } th scope="col" { "Phase" } th scope="col" { "At" }
                th scope="col" { "Lasted" } th scope="col" { "Ended by" }
            } }
            tbody {
                @for span in &call.spans { tr {
                    td { (span.attempt) } td { (span.kind.name()) } td { (seconds(span.began - call.began)) }
                    td { (seconds(span.ended - span.began)) } td { (span.reason) }
                } }
                @if call.over.is_none() { tr {
                    td {} td { (phase(call.state)) } td { (seconds(call.since - call.began)) }
                    td { (seconds(now - call.since)) } td { "goes on" }
                } }
            }
        }
    };
    page("One call", call.over.is_none(), &content)
}

fn row(call: &Shown, now: Instant) -> Markup {
    let gap = call.longest_gap.map_or_else(|| "–".to_owned(), |gap| seconds(gap.lasted));
    html! { tr {
        td { (time_of_day(call.wall)) }
        td class="path" {
            a href=(format!("/_steadfast/calls/{}", call.number)) { (call.method) " " (call.path) }
            @if let Some(app) = &call.app { div class="dim" { (app) } }
        }
        td { (state(call)) }
        td { @if let Some(status) = call.status { (status.as_str()) } @else { "–" } }
        td class="bars" { (waterfall(call, now)) }
        td class="number" { (seconds(call.until(now) - call.began)) }
        td class="number" { (gap) }
        td class="number" { (size(call.answer_bytes)) }
    } }
}

/// Bars of the phases over the time of the call; a tick where the head of the answer came
fn waterfall(call: &Shown, now: Instant) -> Markup {
    let until = call.until(now);
    let whole = (until - call.began).as_secs_f64().max(1e-6);
    let at = |instant: Instant| (instant - call.began).as_secs_f64() / whole * WIDTH;
    let live = (call.over.is_none() && call.since < until).then_some((class(call.state), call.since, until));
    let bars: Vec<_> =
        call.spans.iter().map(|span| (kind(span.kind), span.began, span.ended)).chain(live).collect();
    let first_byte = call.longest_gap.and(bars.iter().rev().find(|bar| bar.0 == "body")).map(|bar| bar.1);
    let told: Vec<_> = bars.iter().map(|bar| format!("{} {}", bar.0, seconds(bar.2 - bar.1))).collect();
    html! {
        svg viewBox="0 0 1000 18" preserveAspectRatio="none" role="img" aria-label=(told.join(", ")) {
            @for (class, began, ended) in &bars {
                rect class=(class) x=(units(at(*began))) y="3" width=(units((at(*ended) - at(*began)).max(2.0))) height="12" {}
            }
            @if let Some(gap) = call.longest_gap {
                rect class="gap" x=(units(at(gap.began))) y="7" width=(units(at(gap.began + gap.lasted) - at(gap.began))) height="4" {}
            }
            @if let Some(first_byte) = first_byte {
                rect class="tick" x=(units(at(first_byte).min(WIDTH - 3.0))) y="0" width="3" height="18" {}
            }
            @if call.limit().is_some() { rect class="limit" x="992" y="0" width="8" height="18" {} }
        }
    }
}

fn legend() -> Markup {
    let parts = [
        ("connect", "connect"),
        ("request", "request"),
        ("backoff", "pause"),
        ("body", "answer"),
        ("gap", "largest gap"),
        ("tick", "first byte"),
        ("limit", "limit reached"),
    ];
    html! { p class="legend dim" { "Each over its own time:" @for (class, name) in parts {
        svg viewBox="0 0 10 10" aria-hidden="true" { rect class=(class) width="10" height="10" {} } (name)
    } } }
}

/// What each limit had to bound, as far as it came
fn in_force(call: &Shown, limits: &Limits, now: Instant) -> Vec<(&'static str, Option<Duration>, Bound)> {
    let until = call.until(now);
    let connects = call.spans.iter().filter(|span| span.kind == SpanKind::Connect);
    let connecting = (call.state == State::Connecting && call.over.is_none()).then(|| now - call.since);
    let connect = connects.map(|span| span.ended - span.began).chain(connecting).max();
    let body = call.spans.iter().rev().find(|span| kind(span.kind) == "body").map(|span| span.began);
    let is_answering = call.over.is_none() && call.state == State::Answering;
    let head = is_answering.then_some(call.since).or(body);
    let gap = call.longest_gap.map(|gap| gap.lasted);
    let silence = if is_answering { gap.max(Some(now - call.last_part)) } else { gap };
    vec![
        ("connect", connect, limits.connect),
        ("first_byte", Some(head.unwrap_or(until) - call.began), limits.first_byte),
        ("silence", silence, limits.silence),
        ("total", Some(until - call.began), limits.total),
    ]
}

fn state(call: &Shown) -> Markup {
    let limit = call.limit();
    html! { @match call.over {
        None => { "live: " (phase(call.state)) }
        Some((Ending::Passed | Ending::Served, _)) => (ending(call)),
        Some((Ending::Refused(code), _)) => span class="bad" { (code.name()) @if let Some(limit) = limit { " (limit " (limit) ")" } },
        Some((Ending::Limit(limit), _)) => span class="bad" { "limit " (limit.name()) },
        Some(_) => span class="bad" { (ending(call)) },
    } }
}

/// The name of its ending, or `live`
fn ending(call: &Shown) -> &'static str {
    call.over.map_or("live", |(ending, _)| ending.name())
}

fn choice(name: &str, chosen: &str, values: BTreeSet<&str>) -> Markup {
    html! { label { (name) select name=(name) {
        option value="" { "all" }
        @for value in values { option value=(value) selected[value == chosen] { (value) } }
    } } }
}

fn page(title: &str, refreshes: bool, content: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                @if refreshes { meta http-equiv="refresh" content="2"; }
                title { (title) }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/_steadfast/style.css";
            }
            body { main { (content) } }
        }
    }
    .into_string()
}

const fn kind(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Connect => "connect",
        SpanKind::Request => "request",
        SpanKind::Backoff => "backoff",
        SpanKind::Body | SpanKind::Stream | SpanKind::AfterMarker => "body",
    }
}

const fn class(state: State) -> &'static str {
    match state {
        State::Connecting => "connect",
        State::Pausing => "backoff",
        State::Idle | State::Serving | State::Waiting => "request",
        State::Answering | State::Flushing | State::Lingering | State::Over => "body",
    }
}

const fn phase(state: State) -> &'static str {
    match state {
        State::Idle => "idle",
        State::Serving => "serving",
        State::Connecting => "connecting",
        State::Waiting => "waiting for the first byte",
        State::Pausing => "pausing",
        State::Answering => "answering",
        State::Flushing | State::Lingering => "ending",
        State::Over => "over",
    }
}

fn units(value: f64) -> String {
    format!("{value:.1}")
}

fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 10.0 { format!("{seconds:.3} s") } else { format!("{seconds:.1} s") }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=9_999_999 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// The time of the day, UTC
fn time_of_day(since_epoch: Duration) -> String {
    let second = since_epoch.as_secs() % (24 * 3600);
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}
