//! Settings from variables.

use super::super::*;

fn read(variables: &[(&str, &str)]) -> Result<Overrides, String> {
    Overrides::from_environment(variables.iter().copied()).map_err(|error| error.to_string())
}

#[test]
fn cfg_6_every_field_has_a_variable_of_its_name() {
    assert_eq!(Field::RequestTimeout.variable(), "STEADFAST_REQUEST_TIMEOUT");
    for field in Field::ALL {
        let mut expected = Overrides::new();
        expected.set(field.name(), "7").unwrap();
        assert_eq!(read(&[(&field.variable(), "7")]), Ok(expected));
    }
}

#[test]
fn cfg_6_values_are_spelled_as_everywhere() {
    let variables = [
        ("STEADFAST_REQUEST_TIMEOUT", " 0.25\n"),
        ("STEADFAST_TOTAL_DEADLINE", "inf"),
        ("STEADFAST_MAX_ATTEMPTS", "2"),
        ("STEADFAST_TOOL_TIMEOUT", ""),
        ("STEADFAST_CONFIG_FILE", "/etc/steadfast.toml"),
        ("REQUEST_TIMEOUT", "soon"),
        ("steadfast_request_timeout", "soon"),
        ("PATH", "/bin"),
    ];
    let expected = Overrides::new().request_timeout(0.25).total_deadline(f64::INFINITY).max_attempts(2);
    assert_eq!(read(&variables), Ok(expected));
    assert_eq!(read(&[]), Ok(Overrides::new()));
    assert_eq!(CONFIG_FILE_VARIABLE, "STEADFAST_CONFIG_FILE");
}

#[test]
fn cfg_6_an_unknown_variable_is_refused_with_the_nearest() {
    let cases = [
        ("STEADFAST_REQUEST_TIMOUT", "STEADFAST_REQUEST_TIMEOUT"),
        ("STEADFAST_request_timeout", "STEADFAST_REQUEST_TIMEOUT"),
        ("STEADFAST_IDLE_TIMEOUT", "STEADFAST_STREAM_IDLE_TIMEOUT"),
        ("STEADFAST_CONFIG_FIL", "STEADFAST_CONFIG_FILE"),
        ("STEADFAST_CONFIG", "STEADFAST_CONFIG_FILE"),
    ];
    for (name, nearest) in cases {
        for value in ["sk-secret", ""] {
            assert_eq!(
                read(&[(name, value)]),
                Err(format!("there is no variable {name}; the nearest is {nearest}"))
            );
        }
    }
}

#[test]
fn cfg_6_a_value_is_checked_and_the_variable_named() {
    assert_eq!(
        read(&[("STEADFAST_MAX_ATTEMPTS", "0")]),
        Err("STEADFAST_MAX_ATTEMPTS: max_attempts cannot be 0: it takes a whole number from 1".to_owned())
    );
    let refused = read(&[("STEADFAST_AFTER_MARKER", "unbounded")]).unwrap_err();
    assert!(refused.starts_with("STEADFAST_AFTER_MARKER: after_marker cannot be unbounded"), "{refused}");
}

#[test]
fn the_error_does_not_depend_on_the_order_of_an_environment() {
    let mut variables = [("STEADFAST_ZZZ", "1"), ("STEADFAST_AAA", "1"), ("STEADFAST_MAX_ATTEMPTS", "0")];
    let refused = read(&variables);
    assert!(refused.as_ref().unwrap_err().contains("STEADFAST_AAA"));
    variables.reverse();
    assert_eq!(read(&variables), refused);
}

#[cfg(unix)]
#[test]
fn what_is_no_text_is_refused_where_it_is_ours_only() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let read = |name: &[u8], value: &[u8]| {
        Overrides::from_environment([(OsStr::from_bytes(name), OsStr::from_bytes(value))])
    };
    assert_eq!(read(b"LS_\xff", b"\xff"), Ok(Overrides::new()));
    assert!(matches!(read(b"STEADFAST_\xff", b"1"), Err(EnvironmentError::UnknownName { .. })));
    assert!(matches!(read(b"STEADFAST_TOOL_TIMEOUT", b"1\xff"), Err(EnvironmentError::Refused { .. })));
}
