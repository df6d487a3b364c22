mod channels;
mod environment;
#[cfg(feature = "toml")]
mod file;
mod scopes;

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use serde::Deserialize;
use serde::de::value::MapDeserializer;

use super::*;
use crate::time::Bound;

fn with(overrides: &Overrides) -> Result<RequestConfig, ConfigError> {
    RequestConfig::default().with(overrides)
}

/// The names and defaults of rule CFG, in the rule's order
const RULE: [(&str, &str); 17] = [
    ("connect_timeout", "10"),
    ("request_timeout", "600"),
    ("stream_idle_timeout", "120"),
    ("total_deadline", "900"),
    ("max_attempts", "3"),
    ("mcp_connect_timeout", "120"),
    ("mcp_request_timeout", "120"),
    ("stream_deadline", "inf"),
    ("content_idle_timeout", "inf"),
    ("first_content_timeout", "inf"),
    ("after_sentinel", "0.5"),
    ("after_marker", "2"),
    ("max_retry_after", "inf"),
    ("tool_timeout", "120"),
    ("max_event_bytes", "16777216"),
    ("max_head_bytes", "65536"),
    ("max_body_bytes", "67108864"),
];

#[test]
fn the_defaults_are_those_of_the_rule() {
    let config = RequestConfig::default();
    let table: Vec<(&str, String)> =
        Field::ALL.into_iter().map(|field| (field.name(), config.get(field))).collect();
    let rule: Vec<(&str, String)> =
        RULE.into_iter().map(|(name, default)| (name, default.to_owned())).collect();
    assert_eq!(table, rule);
}

#[test]
fn a_field_is_read_by_the_method_of_its_name() {
    let overrides = Overrides::new()
        .connect_timeout(1.0)
        .request_timeout(2.0)
        .stream_idle_timeout(3.0)
        .total_deadline(4.0)
        .max_attempts(5)
        .mcp_connect_timeout(6.0)
        .mcp_request_timeout(7.0)
        .stream_deadline(8.0)
        .content_idle_timeout(9.0)
        .first_content_timeout(10.0)
        .after_sentinel(11.0)
        .after_marker(12.0)
        .max_retry_after(13.0)
        .tool_timeout(14.0)
        .max_event_bytes(15)
        .max_head_bytes(16)
        .max_body_bytes(17);
    let config = with(&overrides).unwrap();
    let seconds = |seconds| Bound::Limited(Duration::from_secs(seconds));
    assert_eq!(config.connect_timeout(), seconds(1));
    assert_eq!(config.request_timeout(), seconds(2));
    assert_eq!(config.stream_idle_timeout(), seconds(3));
    assert_eq!(config.total_deadline(), seconds(4));
    assert_eq!(config.max_attempts(), NonZeroU32::new(5).unwrap());
    assert_eq!(config.mcp_connect_timeout(), seconds(6));
    assert_eq!(config.mcp_request_timeout(), seconds(7));
    assert_eq!(config.stream_deadline(), seconds(8));
    assert_eq!(config.content_idle_timeout(), seconds(9));
    assert_eq!(config.first_content_timeout(), seconds(10));
    assert_eq!(config.after_sentinel(), seconds(11));
    assert_eq!(config.after_marker(), Duration::from_secs(12));
    assert_eq!(config.max_retry_after(), seconds(13));
    assert_eq!(config.tool_timeout(), seconds(14));
    assert_eq!(config.max_event_bytes(), 15);
    assert_eq!(config.max_head_bytes(), 16);
    assert_eq!(config.max_body_bytes(), 17);
    let numbers: Vec<String> = Field::ALL.into_iter().map(|field| config.get(field)).collect();
    assert_eq!(numbers, (1..=17).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn times_are_given_as_seconds_durations_or_bounds() {
    let half = Duration::from_millis(500);
    let config = with(
        &Overrides::new()
            .connect_timeout(0.5)
            .request_timeout(half)
            .stream_idle_timeout(Bound::Limited(half))
            .total_deadline(Bound::Unbounded)
            .tool_timeout(f64::INFINITY)
            .after_marker(0.0),
    )
    .unwrap();
    assert_eq!(config.connect_timeout(), Bound::Limited(half));
    assert_eq!(config.request_timeout(), Bound::Limited(half));
    assert_eq!(config.stream_idle_timeout(), Bound::Limited(half));
    assert_eq!(config.total_deadline(), Bound::Unbounded);
    assert_eq!(config.tool_timeout(), Bound::Unbounded);
    assert_eq!(config.after_marker(), Duration::ZERO);
}

#[test]
fn every_time_refuses_what_cfg_1_refuses() {
    for field in Field::ALL.into_iter().filter(|field| field.takes().starts_with("seconds")) {
        for refused in ["NaN", "-1", "1000000001", "10000000000", "-inf", "0.000000000001", "soon", ""] {
            let mut overrides = Overrides::new();
            assert_eq!(
                overrides.set(field.name(), refused),
                Err(ConfigError::OutOfRange { field, value: refused.to_owned() })
            );
            assert_eq!(overrides, Overrides::new());
        }
    }
    for field in Field::ALL {
        let zero = field == Field::AfterMarker;
        let unbounded = !zero && field.takes().starts_with("seconds");
        assert_eq!(Overrides::new().set(field.name(), "0").is_ok(), zero, "{field} 0");
        assert_eq!(Overrides::new().set(field.name(), "inf").is_ok(), unbounded, "{field} inf");
    }
}

#[test]
fn every_count_and_size_is_a_whole_number_from_1() {
    let whole = [Field::MaxAttempts, Field::MaxEventBytes, Field::MaxHeadBytes, Field::MaxBodyBytes];
    for field in whole {
        for refused in ["0", "-1", "1.5", "NaN", "inf", "1e3", "99999999999999999999"] {
            assert_eq!(
                Overrides::new().set(field.name(), refused),
                Err(ConfigError::OutOfRange { field, value: refused.to_owned() })
            );
        }
        assert_eq!(Overrides::new().set(field.name(), "1"), Ok(()));
    }
    assert_eq!(Overrides::new().set("max_attempts", "4294967295"), Ok(()));
    assert!(Overrides::new().set("max_attempts", "4294967296").is_err());
}

#[test]
fn a_copy_is_checked_again_and_its_refusal_names_field_and_value() {
    let config = with(&Overrides::new().connect_timeout(3.0)).unwrap();
    let refusals = [
        (
            Overrides::new().request_timeout(f64::NAN),
            "request_timeout cannot be NaN: it takes seconds over 0",
        ),
        (Overrides::new().tool_timeout(0.0), "tool_timeout cannot be 0: it takes seconds over 0"),
        (Overrides::new().connect_timeout(-1.0), "connect_timeout cannot be -1: it takes seconds over 0"),
        (
            Overrides::new().total_deadline(1e10),
            "total_deadline cannot be 10000000000: it takes seconds over 0",
        ),
        (
            Overrides::new().stream_deadline(Duration::ZERO),
            "stream_deadline cannot be 0: it takes seconds over 0",
        ),
        (
            Overrides::new().stream_idle_timeout(Bound::Limited(Duration::ZERO)),
            "stream_idle_timeout cannot be 0: it takes seconds over 0",
        ),
        (
            Overrides::new().after_marker(Bound::Unbounded),
            "after_marker cannot be inf: it takes seconds from 0, for no wait, up to 1e9",
        ),
        (Overrides::new().max_attempts(0), "max_attempts cannot be 0: it takes a whole number from 1"),
        (
            Overrides::new().max_head_bytes(0),
            "max_head_bytes cannot be 0: it takes a whole number of bytes from 1",
        ),
    ];
    for (overrides, message) in refusals {
        let refusal = config.with(&overrides).unwrap_err().to_string();
        assert!(refusal.starts_with(message), "{refusal}");
    }
    assert_eq!(config.with(&Overrides::new()), Ok(config));
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest() {
    let cases = [
        ("request_timout", "request_timeout"),
        ("request-timeout", "request_timeout"),
        ("REQUEST_TIMEOUT", "request_timeout"),
        ("reuqest_timeout", "request_timeout"),
        ("read_timeout", "request_timeout"),
        ("idle_timeout", "stream_idle_timeout"),
        ("max_attempt", "max_attempts"),
        ("attempts", "max_attempts"),
        ("deadline", "total_deadline"),
        ("idle", "stream_idle_timeout"),
        ("head", "max_head_bytes"),
    ];
    for (name, nearest) in cases {
        let refusal = ConfigError::UnknownName { name: name.to_owned(), nearest };
        assert_eq!(Overrides::new().set(name, "1"), Err(refusal.clone()));
        assert_eq!(Field::named(name), Err(refusal));
    }
    assert_eq!(
        Overrides::new().set("request_timout", "1").unwrap_err().to_string(),
        "there is no setting request_timout; the nearest is request_timeout"
    );
    let long = "request_timeout".repeat(100_000);
    assert!(matches!(Field::named(&long), Err(ConfigError::UnknownName { .. })));
}

#[test]
fn of_merged_overrides_the_later_wins() {
    let earlier = Overrides::new().connect_timeout(1.0).request_timeout(2.0);
    let later = Overrides::new().request_timeout(3.0).max_attempts(4);
    let merged = Overrides::new().connect_timeout(1.0).request_timeout(3.0).max_attempts(4);
    assert_eq!(earlier.merge(&later), merged);
}

#[test]
fn overrides_are_read_from_maps() {
    let read = |json: &str| serde_json::from_str::<Overrides>(json).map_err(|error| error.to_string());
    assert_eq!(
        read(
            r#"{"request_timeout": 30, "stream_idle_timeout": "inf", "connect_timeout": 0.25, "max_attempts": 2}"#
        ),
        Ok(Overrides::new()
            .request_timeout(30.0)
            .stream_idle_timeout(Bound::Unbounded)
            .connect_timeout(0.25)
            .max_attempts(2))
    );
    assert_eq!(read("{}"), Ok(Overrides::new()));
    let refusals = [
        (r#"{"request_timout": 1}"#, "there is no setting request_timout; the nearest is request_timeout"),
        (r#"{"tool_timeout": -1}"#, "tool_timeout cannot be -1: it takes seconds"),
        (r#"{"max_attempts": 0}"#, "max_attempts cannot be 0: it takes a whole number from 1"),
        (r#"{"max_attempts": true}"#, "invalid type: boolean `true`, expected a number, or \"inf\""),
    ];
    for (json, message) in refusals {
        let refusal = read(json).unwrap_err();
        assert!(refusal.starts_with(message), "{refusal}");
    }
}

#[test]
fn floats_that_json_lacks_are_read_where_a_format_has_them() {
    let read = |seconds: f64| {
        let map = [("tool_timeout", seconds)].into_iter();
        Overrides::deserialize(MapDeserializer::<_, serde::de::value::Error>::new(map))
            .map_err(|error| error.to_string())
    };
    assert_eq!(read(f64::INFINITY), Ok(Overrides::new().tool_timeout(Bound::Unbounded)));
    assert!(read(f64::NAN).unwrap_err().starts_with("tool_timeout cannot be NaN: it takes seconds over 0"));
    assert!(read(1e10).unwrap_err().starts_with("tool_timeout cannot be 10000000000: it takes seconds"));
}

#[test]
fn a_serialised_configuration_is_read_back() {
    let config = with(&Overrides::new().connect_timeout(0.1).after_marker(0.0).max_attempts(9)).unwrap();
    let json = serde_json::to_value(config).unwrap();
    assert_eq!(json["connect_timeout"], 0.1);
    assert_eq!(json["stream_deadline"], "inf");
    assert_eq!(json["max_attempts"], 9);
    let overrides: Overrides = serde_json::from_value(json).unwrap();
    assert_eq!(with(&overrides), Ok(config));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_get_writes_set_reads(
        nanos in prop_oneof![1..10_000u64, 1..u64::MAX, 1..1_000_000_000_000_000_000u64],
        whole in 1..=u32::MAX,
    ) {
        let time = Duration::from_nanos(nanos.min(1_000_000_000_000_000_000));
        let mut given = Overrides::new().max_attempts(whole).max_body_bytes(whole as usize);
        for field in Field::ALL.into_iter().filter(|field| field.takes().starts_with("seconds")) {
            given.set(field.name(), &time.as_secs_f64().to_string()).unwrap();
        }
        let config = with(&given).unwrap();
        let mut read = Overrides::new();
        for field in Field::ALL {
            read.set(field.name(), &config.get(field)).unwrap();
        }
        prop_assert_eq!(with(&read), Ok(config));
        if nanos < 1 << 52 {
            prop_assert_eq!(config.tool_timeout(), Bound::Limited(time));
        }
    }

    #[test]
    fn any_text_is_taken_or_refused(name in "\\PC{0,80}", value in "\\PC{0,40}") {
        let _ = Overrides::new().set(&name, &value);
        for field in Field::ALL {
            let mut overrides = Overrides::new();
            if overrides.set(field.name(), &value).is_ok() {
                prop_assert!(with(&overrides).is_ok());
            }
        }
    }
}
