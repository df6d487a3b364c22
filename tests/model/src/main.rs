//! Checks every sequence of up to `k` events, the program's one argument, and prints what it went through.

use std::process::ExitCode;
use std::time::Instant;

use steadfast_model::{Search, cases};

fn main() -> ExitCode {
    let k = std::env::args().nth(1).and_then(|k| k.parse().ok()).unwrap_or(8);
    let mut differences = 0;
    for case in &cases() {
        let began = Instant::now();
        match Search::new(case, None).deepen(k) {
            Ok(report) => println!("{:24} {report:?} {:?}", case.name, began.elapsed()),
            Err(difference) => {
                differences += 1;
                println!("{difference}");
            }
        }
    }
    println!("model: k={k}, differences={differences}");
    if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
