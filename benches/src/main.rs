//! Prints what a streaming call costs.

use steadfast::call::Call;
use steadfast_bench::heap::{allocations, live};
use steadfast_bench::streaming::{DIALECTS, Streaming, chunk, text_event};

const EVENTS: usize = 100_000;

fn main() {
    println!("a call in place: {} bytes", size_of::<Call>());
    for dialect in DIALECTS {
        let before = live();
        let mut streaming = Streaming::new(dialect);
        let held = live() - before;
        let event = chunk(&text_event(dialect, false));
        let before = allocations();
        for _ in 0..EVENTS {
            streaming.receive_pulled(event.as_bytes());
        }
        let allocations = allocations() - before;
        println!(
            "{dialect:?}: {held} bytes on the heap while it waits, {allocations} allocations for {EVENTS} events"
        );
    }
}
