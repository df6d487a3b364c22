//! Every input of the corpora, through its target.

use std::fs;
use std::path::Path;

use steadfast_fuzz::{TARGETS, Target};

/// The most files, and bytes, of one corpus
const MAX_FILES: usize = 300;
const MAX_BYTES: usize = 1 << 20;

/// The inputs of a target: those that reach the most code, and those that once failed
fn inputs(target: Target) -> Vec<(String, Vec<u8>)> {
    let mut inputs = Vec::new();
    for folder in ["corpus", "regressions"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(target.name);
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            inputs.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    inputs.sort();
    inputs
}

#[test]
fn every_input_passes() {
    for target in TARGETS {
        let inputs = inputs(target);
        for (name, input) in &inputs {
            println!("{name}");
            (target.run)(input);
        }
        println!("corpus {}: {} inputs pass", target.name, inputs.len());
    }
}

#[test]
fn every_target_has_a_corpus_and_a_dictionary_and_both_are_small() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for target in TARGETS {
        let name = target.name;
        let inputs = inputs(target);
        let bytes: usize = inputs.iter().map(|(_, input)| input.len()).sum();
        assert!((10..=MAX_FILES).contains(&inputs.len()), "{name}: {} files", inputs.len());
        assert!(bytes <= MAX_BYTES, "{name}: {bytes} bytes");
        let binary = fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(binary.contains(&format!("target!({name})")), "{name}");
        assert!(folder.join(format!("dictionaries/{name}.dict")).exists(), "{name}");
    }
    let binaries = fs::read_dir(folder.join("fuzz_targets")).unwrap().count();
    let corpora = fs::read_dir(folder.join("corpus")).unwrap().count();
    assert_eq!((binaries, corpora), (TARGETS.len(), TARGETS.len()));
}
