//! Scopes: around futures and closures, across threads, and when things go wrong.

#![allow(clippy::disallowed_methods, reason = "a scope belongs to a thread, and can be taken to another")]

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::thread;

use super::super::*;
use super::channels::{AloneWithDefault, attempts};

/// The attempts in force, which stand for the whole configuration
fn in_force() -> u32 {
    RequestConfig::current().config().max_attempts().get()
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn ready<F: Future>(future: F) -> F::Output {
    match poll(pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

/// Pending once
async fn turn() {
    let mut turned = false;
    poll_fn(|_| if std::mem::replace(&mut turned, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Tells what is in force when it is dropped
struct Dropped(Rc<Cell<u32>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.set(in_force());
    }
}

/// A panic whose message the test's output does not need
fn panics(f: impl FnOnce()) {
    assert!(
        catch_unwind(AssertUnwindSafe(|| {
            f();
        }))
        .is_err()
    );
}

#[test]
fn cfg_3_a_scope_is_in_force_while_its_future_is_polled_and_only_then() {
    let _alone = AloneWithDefault::built_in();
    let seen = RefCell::new(Vec::new());
    let mut scoped = pin!(
        RequestConfig::scope(&attempts(7), async {
            seen.borrow_mut().push(in_force());
            turn().await;
            seen.borrow_mut().push(in_force());
            "done"
        })
        .unwrap()
    );
    assert_eq!(in_force(), 3);
    assert_eq!(poll(scoped.as_mut()), Poll::Pending);
    assert_eq!(in_force(), 3);
    assert_eq!(poll(scoped.as_mut()), Poll::Ready("done"));
    assert_eq!(in_force(), 3);
    assert_eq!(*seen.borrow(), [7, 7]);
}

#[test]
fn cfg_3_scopes_nest_and_an_inner_one_merges_over_the_outer() {
    let _alone = AloneWithDefault::built_in();
    let outer = attempts(7).connect_timeout(7.0);
    let connect = || RequestConfig::current().config().get(Field::ConnectTimeout);
    ready(
        RequestConfig::scope(&outer, async {
            let inner = RequestConfig::scope(&attempts(8), async { (in_force(), connect()) });
            assert_eq!(inner.unwrap().await, (8, "7".to_owned()));
            assert_eq!((in_force(), connect()), (7, "7".to_owned()));
            let inner = RequestConfig::sync_scope(&attempts(9), || (in_force(), connect()));
            assert_eq!(inner, Ok((9, "7".to_owned())));
            assert_eq!(in_force(), 7);
        })
        .unwrap(),
    );
    assert_eq!(in_force(), 3);
}

#[test]
fn cfg_3_a_scope_merges_once_when_it_is_made() {
    let _alone = AloneWithDefault::built_in();
    RequestConfig::set_default_overrides(&attempts(4)).unwrap();
    let scoped = RequestConfig::scope(&Overrides::new().tool_timeout(1.0), async {
        let before = in_force();
        RequestConfig::set_default(RequestConfig::default());
        (before, in_force())
    })
    .unwrap();
    RequestConfig::set_default_overrides(&attempts(5)).unwrap();
    let elsewhere = RequestConfig::sync_scope(&attempts(6), || ready(scoped)).unwrap();
    assert_eq!(elsewhere, (4, 4), "neither a later default nor where it is polled matters");
    assert_eq!(in_force(), 3);
}

#[test]
fn cfg_3_tasks_interleaved_on_one_thread_see_nothing_of_each_other() {
    let _alone = AloneWithDefault::built_in();
    let task = |expected: u32| async move {
        for _ in 0..10 {
            assert_eq!(in_force(), expected);
            turn().await;
        }
    };
    let mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>> = (4..8)
        .map(|count| Box::pin(RequestConfig::scope(&attempts(count), task(count)).unwrap()) as Pin<Box<_>>)
        .collect();
    tasks.push(Box::pin(task(3)));
    for round in 0..11 {
        for task in &mut tasks {
            assert_eq!(poll(task.as_mut()).is_ready(), round == 10);
            assert_eq!(in_force(), 3);
        }
    }
}

#[test]
fn cfg_3_a_future_is_dropped_inside_its_scope() {
    let _alone = AloneWithDefault::built_in();
    let scoped = |waits: bool| {
        let seen = Rc::new(Cell::new(0));
        let dropped = Dropped(Rc::clone(&seen));
        let future = async move {
            let _dropped = dropped;
            if waits {
                turn().await;
            }
        };
        (Box::pin(RequestConfig::scope(&attempts(7), future).unwrap()), seen)
    };
    let (unpolled, seen) = scoped(true);
    drop(unpolled);
    assert_eq!(seen.get(), 7, "never polled");
    let (mut waiting, seen) = scoped(true);
    assert!(poll(waiting.as_mut()).is_pending());
    RequestConfig::sync_scope(&attempts(8), || drop(waiting)).unwrap();
    assert_eq!(seen.get(), 7, "half way");
    let (mut done, seen) = scoped(false);
    assert!(poll(done.as_mut()).is_ready());
    drop(done);
    assert_eq!(seen.get(), 7, "at its end");
    assert_eq!(in_force(), 3);
}

#[test]
fn cfg_3_what_was_in_force_is_so_again_after_a_panic() {
    let _alone = AloneWithDefault::built_in();
    RequestConfig::sync_scope(&attempts(7), || {
        panics(|| RequestConfig::sync_scope(&attempts(8), || panic!("in a closure")).unwrap());
        assert_eq!(in_force(), 7);
        let seen = Rc::new(Cell::new(0));
        let dropped = Dropped(Rc::clone(&seen));
        let future = async move {
            let _dropped = dropped;
            turn().await;
            panic!("in a poll");
        };
        let mut scoped = Box::pin(RequestConfig::scope(&attempts(9), future).unwrap());
        assert!(poll(scoped.as_mut()).is_pending());
        panics(|| _ = poll(scoped.as_mut()));
        assert_eq!((in_force(), seen.get()), (7, 9));
        drop(scoped);
        assert_eq!(in_force(), 7);
    })
    .unwrap();
    assert_eq!(in_force(), 3);
}

#[test]
fn cfg_3_a_captured_scope_goes_to_another_thread() {
    fn assert_portable<T: Clone + Send + Sync + 'static>(value: T) -> T {
        value
    }
    let _alone = AloneWithDefault::built_in();
    let scope = RequestConfig::sync_scope(&attempts(7), Scope::current).unwrap();
    let scope = assert_portable(scope);
    assert_eq!(in_force(), 3);
    thread::scope(|threads| {
        let inside = threads.spawn(|| (scope.in_scope(in_force), in_force()));
        let outside = threads.spawn(in_force);
        let future = threads.spawn(|| ready(scope.clone().wrap(async { in_force() })));
        assert_eq!(inside.join().unwrap(), (7, 3));
        assert_eq!(outside.join().unwrap(), 3);
        assert_eq!(future.join().unwrap(), 7);
    });
}

#[test]
fn cfg_3_captured_where_there_is_no_scope_the_default_is_followed() {
    let _alone = AloneWithDefault::built_in();
    let none = Scope::current();
    RequestConfig::set_default_overrides(&attempts(5)).unwrap();
    assert_eq!(none.in_scope(in_force), 5);
    let inside = RequestConfig::sync_scope(&attempts(7), || (none.in_scope(in_force), in_force())).unwrap();
    assert_eq!(inside, (5, 7));
}

#[test]
fn cfg_1_a_scope_that_cannot_be_runs_nothing() {
    let seen = Rc::new(Cell::new(0));
    let dropped = Dropped(Rc::clone(&seen));
    let refused = RequestConfig::scope(&attempts(0), async move { drop(dropped) }).err().unwrap();
    assert_eq!(refused.to_string(), "max_attempts cannot be 0: it takes a whole number from 1");
    let refused = RequestConfig::sync_scope(&attempts(0), || panic!("called")).map(|never: u32| never);
    assert_eq!(refused, Err(ConfigError::OutOfRange { field: Field::MaxAttempts, value: "0".to_owned() }));
}

#[test]
fn a_future_outlives_the_scopes_of_its_thread() {
    let _alone = AloneWithDefault::built_in();
    /// Dropped when its thread ends, after or before the thread's scope is
    struct AtTheEnd(RefCell<Option<Pin<Box<Scoped<Last>>>>>);
    /// Asks for what is in force when it is dropped
    struct Last;
    impl Future for Last {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            Poll::Pending
        }
    }
    impl Drop for Last {
        fn drop(&mut self) {
            assert!([3, 7].contains(&in_force()));
        }
    }
    thread_local! {
        static FIRST: AtTheEnd = const { AtTheEnd(RefCell::new(None)) };
        static AFTER: AtTheEnd = const { AtTheEnd(RefCell::new(None)) };
    }
    let leave = |at_the_end: &AtTheEnd| {
        let mut scoped = Box::pin(RequestConfig::scope(&attempts(7), Last).unwrap());
        assert!(poll(scoped.as_mut()).is_pending());
        *at_the_end.0.borrow_mut() = Some(scoped);
    };
    thread::spawn(move || {
        // The one is registered before the thread's scope is first used, the other after it.
        FIRST.with(|_| ());
        FIRST.with(leave);
        AFTER.with(leave);
    })
    .join()
    .expect("nothing panics at the thread's end");
}
