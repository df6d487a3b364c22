//! The process default, what a call adds, and which channel wins.

#![allow(clippy::disallowed_methods, reason = "the process default is one for all threads")]

use std::collections::BTreeMap;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::super::*;
use crate::call::Request;

/// The process default for one test alone; the built-ins again when it is dropped
pub(super) struct AloneWithDefault(#[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl AloneWithDefault {
    /// With nothing in force but the built-ins
    pub(super) fn built_in() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = Self(ALONE.lock().unwrap_or_else(PoisonError::into_inner));
        built_in();
        alone
    }
}

impl Drop for AloneWithDefault {
    fn drop(&mut self) {
        built_in();
    }
}

fn built_in() {
    *super::super::process_default::PROCESS_DEFAULT.write().unwrap_or_else(PoisonError::into_inner) =
        EffectiveConfig::BUILT_IN;
}

pub(super) fn attempts(count: u32) -> Overrides {
    Overrides::new().max_attempts(count)
}

fn config(overrides: &Overrides) -> RequestConfig {
    RequestConfig::default().with(overrides).unwrap()
}

#[test]
fn cfg_2_with_no_other_channel_the_built_ins_are_in_force() {
    let _alone = AloneWithDefault::built_in();
    let current = RequestConfig::current();
    assert_eq!(current.config(), RequestConfig::default());
    assert!(Field::ALL.into_iter().all(|field| current.source(field) == Source::BuiltIn));
}

#[test]
fn cfg_2_a_channel_wins_over_those_after_it_and_says_so() {
    let _alone = AloneWithDefault::built_in();
    RequestConfig::set_default_overrides(&attempts(2).connect_timeout(2.0).tool_timeout(2.0)).unwrap();
    let of_call = RequestConfig::sync_scope(&attempts(4).connect_timeout(4.0), || {
        RequestConfig::current().with(&attempts(8)).unwrap()
    })
    .unwrap();
    let expected = [
        (Field::MaxAttempts, "8", Source::Call),
        (Field::ConnectTimeout, "4", Source::Scope),
        (Field::ToolTimeout, "2", Source::Default(Origin::Program)),
        (Field::RequestTimeout, "600", Source::BuiltIn),
    ];
    for (field, value, source) in expected {
        assert_eq!((of_call.config().get(field).as_str(), of_call.source(field)), (value, source), "{field}");
    }
}

#[test]
fn cfg_2_a_whole_configuration_per_call_supplies_every_field() {
    let _alone = AloneWithDefault::built_in();
    RequestConfig::set_default(config(&attempts(2).tool_timeout(2.0)));
    let whole = config(&attempts(9));
    let request = Request::post("http://localhost/").overrides(attempts(5)).config(whole).build().unwrap();
    let of_call = RequestConfig::sync_scope(&attempts(4).connect_timeout(4.0), || {
        RequestConfig::current().with(request.overrides()).unwrap()
    })
    .unwrap();
    assert_eq!(of_call.config(), whole);
    assert!(Field::ALL.into_iter().all(|field| of_call.source(field) == Source::Call));

    let request =
        Request::post("http://localhost/").config(whole).overrides(attempts(5)).overrides(Overrides::new());
    let of_call = RequestConfig::current().with(request.build().unwrap().overrides()).unwrap();
    assert_eq!(of_call.config(), config(&attempts(5)), "overrides merge over it");
}

#[test]
fn cfg_4_a_whole_default_replaces_and_overrides_merge() {
    let _alone = AloneWithDefault::built_in();
    let (first, second) = (attempts(2).tool_timeout(2.0), attempts(3).connect_timeout(3.0));
    assert_eq!(RequestConfig::set_default(config(&first)), RequestConfig::default());
    assert_eq!(RequestConfig::set_default_overrides(&second), Ok(config(&first)));
    assert_eq!(RequestConfig::current().config(), config(&first.merge(&second)));
    assert_eq!(RequestConfig::set_default(config(&second)), config(&first.merge(&second)));
    assert_eq!(RequestConfig::current().config(), config(&second));
}

#[test]
fn cfg_4_what_cannot_be_changes_no_default() {
    let _alone = AloneWithDefault::built_in();
    let refused = RequestConfig::set_default_overrides(&attempts(0).tool_timeout(2.0)).unwrap_err();
    assert_eq!(refused.to_string(), "max_attempts cannot be 0: it takes a whole number from 1");
    assert_eq!(RequestConfig::current(), EffectiveConfig::BUILT_IN);
}

#[test]
fn cfg_4_changes_of_several_threads_are_all_kept() {
    let _alone = AloneWithDefault::built_in();
    let begin = Barrier::new(Field::ALL.len());
    thread::scope(|threads| {
        for field in Field::ALL {
            let begin = &begin;
            threads.spawn(move || {
                begin.wait();
                for value in 1..=100 {
                    let mut overrides = Overrides::new();
                    overrides.set(field.name(), &value.to_string()).unwrap();
                    let before = RequestConfig::set_default_overrides(&overrides).unwrap();
                    assert!(value == 1 || before.get(field) == (value - 1).to_string(), "{field} {value}");
                }
            });
        }
    });
    let current = RequestConfig::current();
    assert!(Field::ALL.into_iter().all(|field| current.config().get(field) == "100"), "{current:?}");
}

#[test]
fn cfg_6_the_default_says_what_fed_it() {
    let _alone = AloneWithDefault::built_in();
    let file = attempts(2).connect_timeout(2.0).tool_timeout(2.0);
    RequestConfig::set_default_overrides_from(Origin::File, &file).unwrap();
    let environment = attempts(3).connect_timeout(3.0);
    RequestConfig::set_default_overrides_from(Origin::Environment, &environment).unwrap();
    RequestConfig::set_default_overrides(&attempts(4)).unwrap();
    let current = RequestConfig::current();
    let told = [Field::MaxAttempts, Field::ConnectTimeout, Field::ToolTimeout, Field::AfterMarker]
        .map(|field| (current.config().get(field), current.source(field).to_string()));
    let expected = [("4", "default"), ("3", "environment"), ("2", "file"), ("2", "built-in")];
    assert_eq!(told, expected.map(|(value, source)| (value.to_owned(), source.to_owned())));
}

fn some_overrides() -> impl Strategy<Value = Overrides> {
    btree_map(0..Field::ALL.len(), 1..1000_u32, 0..6).prop_map(|fields: BTreeMap<usize, u32>| {
        let mut overrides = Overrides::new();
        for (field, value) in fields {
            overrides.set(Field::ALL[field].name(), &value.to_string()).unwrap();
        }
        overrides
    })
}

/// What is in force for the call in the innermost scope
fn in_scopes(scopes: &[Overrides], call: &Overrides) -> EffectiveConfig {
    match scopes {
        [] => RequestConfig::current().with(call).unwrap(),
        [outer, inner @ ..] => RequestConfig::sync_scope(outer, || in_scopes(inner, call)).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cfg_2_each_field_is_the_first_channels_that_gives_it(
        default in some_overrides(),
        scopes in vec(some_overrides(), 0..4),
        call in some_overrides(),
    ) {
        let _alone = AloneWithDefault::built_in();
        RequestConfig::set_default_overrides(&default).unwrap();
        let in_force = in_scopes(&scopes, &call);
        for field in Field::ALL {
            let of_call = call.get(field).map(|value| (value, Source::Call));
            let of_scope =
                scopes.iter().rev().find_map(|scope| scope.get(field)).map(|value| (value, Source::Scope));
            let of_default = default.get(field).map(|value| (value, Source::Default(Origin::Program)));
            let expected = of_call
                .or(of_scope)
                .or(of_default)
                .unwrap_or_else(|| (RequestConfig::default().get(field), Source::BuiltIn));
            prop_assert_eq!((in_force.config().get(field), in_force.source(field)), expected, "{}", field);
        }
        prop_assert_eq!(RequestConfig::current().with(&call).unwrap(), in_scopes(&[], &call));
    }

    #[test]
    fn a_whole_configuration_is_the_same_as_overrides(overrides in some_overrides()) {
        let whole = config(&overrides);
        prop_assert_eq!(config(&attempts(7).merge(&whole.into())), whole);
    }
}
