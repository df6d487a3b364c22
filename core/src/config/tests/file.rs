//! Settings from TOML.

use proptest::prelude::*;

use super::super::*;

fn refusal(text: &str) -> String {
    Overrides::from_toml(text).unwrap_err().to_string()
}

#[test]
fn cfg_6_values_are_numbers_or_texts() {
    let text = r#"
        # Comments are those of TOML.
        connect_timeout = 1
        request_timeout = 2.5
        stream_idle_timeout = "3.5"
        total_deadline = inf
        tool_timeout = "inf"
        "after_marker" = 0
        max_attempts = "2"
        max_head_bytes = 0x1_0000
        max_body_bytes = 1_000_000
        max_retry_after = 1e3
    "#;
    let expected = Overrides::new()
        .connect_timeout(1.0)
        .request_timeout(2.5)
        .stream_idle_timeout(3.5)
        .total_deadline(f64::INFINITY)
        .tool_timeout(f64::INFINITY)
        .after_marker(0.0)
        .max_attempts(2)
        .max_head_bytes(0x1_0000)
        .max_body_bytes(1_000_000)
        .max_retry_after(1000.0);
    assert_eq!(Overrides::from_toml(text), Ok(expected));
    assert_eq!(Overrides::from_toml(""), Ok(Overrides::new()));
}

#[test]
fn cfg_6_a_refusal_names_the_line_and_the_nearest_name() {
    let cases = [
        ("\n\nrequest_timout = 1", "3: there is no setting request_timout; the nearest is request_timeout"),
        ("max_attempts = 0\nzzz = 1", "1: max_attempts cannot be 0: it takes a whole number from 1"),
        ("zzz = 1\nmax_attempts = 0", "1: there is no setting zzz"),
        ("tool_timeout = nan", "1: tool_timeout cannot be nan: it takes seconds over 0"),
        ("tool_timeout = -1", "1: tool_timeout cannot be -1: it takes seconds over 0"),
        ("tool_timeout = 0", "1: tool_timeout cannot be 0: it takes seconds over 0"),
        ("max_attempts = 1.5", "1: max_attempts cannot be 1.5: it takes a whole number from 1"),
        ("\nmax_attempts = true", "2: max_attempts takes a number, or \"inf\""),
        ("[max_attempts]\na = 1", "1: max_attempts takes a number, or \"inf\""),
        ("[relay]\na = 1", "1: there is no setting relay"),
        ("max_attempts = 99999999999999999999", "1: max_attempts cannot be 99999999999999999999"),
    ];
    for (text, message) in cases {
        let refusal = refusal(text);
        assert!(refusal.starts_with(message), "{text}: {refusal}");
    }
}

#[test]
fn cfg_6_what_is_no_toml_is_refused_where_it_is_wrong() {
    for (text, line) in
        [("max_attempts = 1\nsoon\n", "2: "), ("max_attempts = 1\n\nmax_attempts = 2", "3: "), ("= 1", "1: ")]
    {
        assert!(refusal(text).starts_with(line), "{text}: {}", refusal(text));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused_with_a_line_that_it_has(text in "(\\PC|\n|=){0,60}") {
        if let Err(error) = Overrides::from_toml(&text) {
            prop_assert!((1..=text.matches('\n').count() + 1).contains(&error.line), "{}", error);
        }
    }
}
