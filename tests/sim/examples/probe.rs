use steadfast_sim::random::*;
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    std::panic::set_hook(Box::new(|_| {}));
    if a.len() == 1 {
        if let Some(f) = Simulator::explain(a[0]) {
            println!("{f}\n{:?}", f.tape);
        }
        return;
    }
    let t = std::time::Instant::now();
    let mut s = Simulator::new();
    let mut bad = std::collections::BTreeMap::<_, Vec<(u64, String)>>::new();
    for seed in a[0]..a[0] + a[1] {
        if let Err(v) = s.run(seed) {
            bad.entry(v.invariant).or_default().push((seed, v.what));
        }
    }
    let e = t.elapsed().as_secs_f64();
    println!("{:?} {e} calls/s {}", s.totals(), s.totals().calls as f64 / e);
    for (i, l) in &bad {
        println!("{i}: {}", l.len());
        for (s, w) in l.iter().take(6) {
            println!("   {s}: {}", &w[..w.len().min(260)]);
        }
    }
    if a.len() > 2 {
        println!("{}", s.coverage());
    }
    println!("{:?}", s.coverage().missing());
}
