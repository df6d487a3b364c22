//! What steady streaming allocates, and what a call holds that waits in the middle of a stream.
//!
//! Counted for the whole process, so it runs without the test harness, whose own thread allocates.

use steadfast::call::Call;
use steadfast_bench::heap::{allocations, live};
use steadfast_bench::streaming::{DIALECTS, MANNERS, Manner, Streaming, chunk, text_event};

const EVENTS: usize = 4096;

/// The most bytes that a call takes in place: what each of many waiting calls costs at least
///
/// It was a kibibyte until a request could have a body that is read as it goes out and header fields of each
/// attempt, and a call observers and a retry budget: each of them a pointer or less in every call.
const IN_PLACE: usize = 1056;

/// The most bytes that it holds on the heap beside that, once its first event came: the attempt and the
/// layers under the stream (976), the request (some 630 for a small one), the head of the response, and
/// the turn; it was 3700 until a turn could hold what a provider signed in it
const ON_THE_HEAP: usize = 3728;

fn main() {
    steady_streaming_allocates_nothing_but_the_text();
    a_waiting_call_is_small();
    println!("steady streaming allocates nothing but the text, and a waiting call is small");
}

fn steady_streaming_allocates_nothing_but_the_text() {
    for dialect in DIALECTS {
        for manner in MANNERS {
            for escaped in [false, true] {
                let event = chunk(&text_event(dialect, escaped));
                let (read, events) = match manner {
                    Manner::PulledByEight => (event.repeat(8), 8),
                    Manner::Whole | Manner::Split | Manner::Pulled => (event, 1),
                };
                let (first, second) = read.split_at(read.len() / 2);
                let mut streaming = Streaming::new(dialect);
                let once = |streaming: &mut Streaming| match manner {
                    Manner::Whole => streaming.receive(read.as_bytes()),
                    Manner::Split => {
                        streaming.receive(first.as_bytes());
                        streaming.receive(second.as_bytes());
                    }
                    Manner::Pulled | Manner::PulledByEight => streaming.receive_pulled(read.as_bytes()),
                };
                // The first sizes the buffers that every later one uses again.
                once(&mut streaming);
                let taken = streaming.taken;
                let mut grown = 0;
                for number in 0..EVENTS / events {
                    let (before, room) = (allocations(), streaming.room());
                    once(&mut streaming);
                    let now = allocations() - before;
                    let growth = usize::from(streaming.room() != room);
                    grown += growth;
                    // A read that holds more than one event is kept while the consumer has the first.
                    let kept = usize::from(manner == Manner::PulledByEight);
                    assert_eq!(
                        now,
                        growth + kept,
                        "{dialect:?} {manner:?}, escaped: {escaped}, read {number}"
                    );
                }
                assert!(grown <= 16, "the text doubled {grown} times");
                assert!(streaming.taken - taken >= EVENTS * 4, "every event was delivered");
            }
        }
    }
}

fn a_waiting_call_is_small() {
    assert!(size_of::<Call>() <= IN_PLACE, "{} bytes", size_of::<Call>());
    for dialect in DIALECTS {
        let before = live();
        let waiting = Streaming::new(dialect);
        let held = live() - before;
        assert!(held <= ON_THE_HEAP, "{dialect:?}: {held} bytes");
        drop(waiting);
        assert_eq!(live(), before, "{dialect:?}: a call gives back what it took");
    }
}
