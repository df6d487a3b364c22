//! Checks every sequence of up to `k` events, then random longer ones, and prints what it went through.
//!
//! `cargo run --release -p steadfast-model -- K THREADS`; 12 and 2 where they are not given.

use std::process::ExitCode;
use std::time::Instant;

use steadfast_model::{exhaust, walk};

/// Random sequences for each case, their length and their seed
const WALKS: (u64, usize, u64) = (20_000, 40, 1);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map_while(|argument| argument.parse::<usize>().ok());
    let (k, threads) = (arguments.next().unwrap_or(12), arguments.next().unwrap_or(2));
    let began = Instant::now();
    let all = exhaust(k, threads);
    for (name, report) in &all.reports {
        let (sequences, states, compared) = (report.sequences, report.states, report.compared);
        println!("{name:24} sequences={sequences:<12} states={states:<8} compared={compared}");
    }
    println!("{all}, {:.1} s", began.elapsed().as_secs_f64());
    let (walks, length, seed) = WALKS;
    let random = walk(seed, walks, length, threads);
    println!("at random, nothing merged: {random}");
    let is_clean = all.differences.is_empty() && random.differences.is_empty();
    if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
