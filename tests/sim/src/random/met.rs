//! What the client has met of a plan, for the coverage.

use super::coverage::{Coverage, Fault};
use super::plan::{ContentType, Piece, Plan, RetryAfter};
use super::wire::Mark;

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
