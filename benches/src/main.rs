//! Prints what a streaming call costs.

use steadfast_bench::heap::{allocations, live};
use steadfast_bench::streaming::{DIALECTS, MANNERS, Manner, Streaming, chunk, text_event};

fn main() {
    println!("size_of::<Call>() = {}", size_of::<steadfast::call::Call>());
    for dialect in DIALECTS {
        let before = live();
        let idle = Streaming::new(dialect);
        println!("{dialect:?}: {} bytes of heap", live() - before);
        drop(idle);
        for manner in MANNERS {
            for escaped in [false, true] {
                let mut streaming = Streaming::new(dialect);
                let event = chunk(&text_event(dialect, escaped));
                let eight = event.repeat(8);
                let (head, tail) = event.split_at(event.len() / 2);
                let before = allocations();
                for _ in 0..4096 {
                    match manner {
                        Manner::Whole => streaming.receive(event.as_bytes()),
                        Manner::Split => {
                            streaming.receive(head.as_bytes());
                            streaming.receive(tail.as_bytes());
                        }
                        Manner::Pulled => streaming.receive_pulled(event.as_bytes()),
                        Manner::PulledByEight => streaming.receive_pulled(eight.as_bytes()),
                    }
                }
                println!("  {manner:?} {escaped}: {} {:?}", allocations() - before, streaming.room());
            }
        }
    }
}
