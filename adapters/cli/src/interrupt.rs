//! Ctrl-C: the first one asks the program to end, the second one ends it.

use std::io;
use std::process;
use std::thread;

use tokio::runtime;

use crate::exit::Exit;

/// Which signals ask the program to end
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// Ctrl-C
    Interrupt,
    /// Ctrl-C, and what service managers send
    InterruptAndTerminate,
}

/// Calls `first` at the first signal; a second one ends the process
///
/// On a thread of its own, so that a program that is blocked on its output can be ended too.
///
/// Errors: the system refuses a thread or a signal handler.
pub(crate) fn on_interrupt(listen: Listen, first: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = runtime.block_on(async { Signals::new(listen) })?;
    let wait = move || {
        runtime.block_on(signals.next());
        first();
        runtime.block_on(signals.next());
        process::exit(Exit::Cancelled.code().into());
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop)
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new(listen: Listen) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let terminate = match listen {
            Listen::Interrupt => None,
            Listen::InterruptAndTerminate => Some(signal(SignalKind::terminate())?),
        };
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate })
    }

    async fn next(&mut self) {
        let terminate = async {
            match &mut self.terminate {
                Some(terminate) => terminate.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = terminate => {}
        }
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new(_: Listen) -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}
