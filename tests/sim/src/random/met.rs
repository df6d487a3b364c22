//! What the client has met of a plan, for the coverage.

use std::ops::Range;

use super::coverage::{Coverage, Fault};
use super::plan::{ContentType, End, Exchange, Piece, Plan, RetryAfter};
use super::wire::{Asked, Mark, Wire};

/// What a mark is to the coverage
pub(crate) fn met(coverage: &mut Coverage, plan: &Plan, exchange: usize, forwarded: bool, mark: Mark) {
    coverage.fault(match mark {
        Mark::Head => return head_met(coverage, plan, exchange, forwarded),
        Mark::Interim => Fault::Interim,
        Mark::OpensChoice => Fault::SecondChoice,
        Mark::MarkerAgain(_) => Fault::MarkerAgain,
        Mark::InBand(_) => Fault::InBand,
        Mark::Blocked => Fault::Blocked,
        Mark::NotJson => Fault::NotJson,
        Mark::SecondMessage => Fault::SecondMessage,
        Mark::Broken => Fault::Broken,
        Mark::Noise(Piece::Comment) => Fault::Comment,
        Mark::Noise(Piece::Ping) => Fault::Ping,
        Mark::Noise(Piece::Unknown) => Fault::UnknownEvent,
        Mark::Noise(Piece::Null) => Fault::Null,
        Mark::Noise(_) | Mark::Delta | Mark::Marker(_) | Mark::Sentinel | Mark::MayBreak | Mark::BodyEnd => {
            return;
        }
    });
}

/// What a head is to the coverage
pub(crate) fn head_met(coverage: &mut Coverage, plan: &Plan, exchange: usize, forwarded: bool) {
    let head = &plan.exchanges[exchange].head;
    let odd = [
        (!(200..300).contains(&head.status), Fault::ErrorStatus),
        (head.retry_after != RetryAfter::None, Fault::RetryAfter),
        (head.should_retry.is_some(), Fault::ShouldRetry),
        (head.content_type == ContentType::Html, Fault::Html),
        (head.content_type == ContentType::WholeJson, Fault::WholeJson),
        (forwarded && head.status == 407, Fault::ProxyRefuses),
        (forwarded && head.status >= 500, Fault::ProxyFails),
    ];
    for (is_odd, fault) in odd {
        if is_odd {
            coverage.fault(fault);
        }
    }
}

/// What these bytes of the wire are to the coverage, once they have come
pub(crate) fn came(
    coverage: &mut Coverage,
    exchange: &Exchange,
    wire: &Wire,
    asked: Asked<'_>,
    bytes: Range<u32>,
) {
    let is_last = bytes.end as usize == wire.bytes.len();
    let is_cut = is_last && !wire.is_whole;
    let opens_body = (bytes.start..bytes.end).contains(&wire.body_start);
    let breaks_head = |asked: Asked<'_>| {
        exchange.head.padding as usize > asked.config.max_head_bytes()
            && wire.marks.iter().any(|marked| {
                marked.mark == Mark::Broken
                    && marked.known <= wire.body_start
                    && (bytes.start < marked.known && marked.known <= bytes.end)
            })
    };
    for (is_odd, fault) in [
        (is_cut, Fault::Cut),
        (is_cut && wire.end.1 == End::Open, Fault::HalfOpen),
        (exchange.trickle.is_some() && bytes.contains(&1), Fault::Trickle),
        (wire.body_end.is_some_and(|end| bytes.contains(&end)), Fault::Surplus),
        (opens_body && asked.is_array(&exchange.head), Fault::JsonArray),
        (opens_body && wire.is_coded(), Fault::Gzip),
        (breaks_head(asked), Fault::LargeHead),
    ] {
        if is_odd {
            coverage.fault(fault);
        }
    }
}
