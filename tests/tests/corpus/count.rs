//! Which cases have a test, and which wait for a layer that is not there yet: the areas not named here.

use std::collections::BTreeSet;

use steadfast_tests::shared;

/// The areas that have tests, each with their source
const AREAS: &[(char, &str)] = &[
    ('A', include_str!("framing.rs")),
    ('B', include_str!("http1.rs")),
    ('C', include_str!("content.rs")),
    ('D', include_str!("chat.rs")),
    ('E', include_str!("responses.rs")),
    ('F', include_str!("anthropic.rs")),
    ('G', include_str!("gemini.rs")),
    ('H', include_str!("local.rs")),
    ('I', include_str!("tool_calls.rs")),
    ('J', include_str!("retries.rs")),
    ('K', include_str!("clocks.rs")),
    ('L', include_str!("connections.rs")),
];

/// The page of choices, with a row for each case that leaves one
const POLICIES: &str = include_str!("../../../core/src/policies.md");

struct Case {
    id: String,
    level: String,
}

impl Case {
    fn area(&self) -> char {
        self.id.chars().next().unwrap_or_default()
    }

    fn is_to_come(&self) -> bool {
        !AREAS.iter().any(|(area, _)| *area == self.area())
    }
}

/// The cases by their headings: `### A01 [MUST] title`
fn cases(text: &str) -> Vec<Case> {
    let headings = text.lines().filter_map(|line| line.strip_prefix("### "));
    let parts = headings.filter_map(|heading| {
        let (id, rest) = heading.split_once(" [")?;
        let (level, _title) = rest.split_once(']')?;
        Some(Case { id: id.to_owned(), level: level.to_owned() })
    });
    parts.collect()
}

/// The ids at the front of the names of test functions
fn tested() -> BTreeSet<String> {
    let id_of = |after_fn: &str| {
        let (id, _) = after_fn.split_once('_')?;
        let mut letters = id.chars();
        let is_id = letters.next()?.is_ascii_lowercase()
            && letters.clone().count() == 2
            && letters.all(|digit| digit.is_ascii_digit());
        is_id.then(|| id.to_uppercase())
    };
    AREAS.iter().flat_map(|(_, source)| source.split("#[test]\nfn ").skip(1)).filter_map(id_of).collect()
}

#[test]
fn zz_count() {
    let Some(path) = shared::path("corpus/cases.md") else { return };
    let cases = cases(&std::fs::read_to_string(path).expect("a file that is there can be read"));
    let tested = tested();
    let known: BTreeSet<&str> = cases.iter().map(|case| &*case.id).collect();
    assert!(tested.iter().all(|id| known.contains(&**id)), "{tested:?}");

    let missing: Vec<&str> = cases
        .iter()
        .filter(|case| !case.is_to_come() && !tested.contains(&case.id))
        .map(|case| &*case.id)
        .collect();
    assert!(missing.is_empty(), "not tested: {missing:?}");

    let count = |level: &str| {
        let of_level: Vec<_> = cases.iter().filter(|case| case.level == level).collect();
        (of_level.iter().filter(|case| !case.is_to_come()).count(), of_level.len())
    };
    let decided = |case: &&Case| case.level == "POLICY" && !case.is_to_come();
    for case in cases.iter().filter(decided) {
        assert!(POLICIES.contains(&format!("\n| {} |", case.id)), "no choice is documented for {}", case.id);
    }
    let ((must, musts), (should, shoulds), (policy, policies)) =
        (count("MUST"), count("SHOULD"), count("POLICY"));
    assert_eq!(musts + shoulds + policies, cases.len(), "a level of its own");
    assert!(cases.len() >= 100, "{} cases", cases.len());
    println!("corpus: MUST {must}/{musts}, SHOULD {should}/{shoulds}, POLICY {policy} decided");
}
