//! What a body is read from.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// What a body is read from, without blocking
///
/// The adapters have one for the readers of their runtime; [`Ready`] is one for what never waits.
pub trait BodySource: Send {
    /// Reads what there is into `buffer`, which has room: how many bytes, zero at the end
    ///
    /// None where there is nothing yet; the last `waker` that was given is woken once there is.
    ///
    /// Errors: as the source's own. They end the call.
    fn read(&mut self, waker: &Waker, buffer: &mut [u8]) -> Option<io::Result<usize>>;
}

/// A reader that never waits: memory, or a file on a local disk
///
/// One that waits holds up the call, its deadlines included. The adapters have sources for such readers.
#[derive(Clone, Debug)]
pub struct Ready<R>(pub R);

impl<R: io::Read + Send> BodySource for Ready<R> {
    fn read(&mut self, _: &Waker, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return Some(read),
            }
        }
    }
}

/// A waker that calls `wake`, for a driver that has no runtime to bring one
pub fn waker(wake: impl Fn() + Send + Sync + 'static) -> Waker {
    struct Calls<F>(F);

    impl<F: Fn() + Send + Sync + 'static> Wake for Calls<F> {
        fn wake(self: Arc<Self>) {
            self.0();
        }
    }

    Waker::from(Arc::new(Calls(wake)))
}

type Opened = Box<dyn BodySource>;

/// Where a source comes from
#[derive(Clone)]
pub(super) enum Origin {
    Again(Arc<dyn Fn() -> io::Result<Opened> + Send + Sync>),
    /// Until it is taken
    Once(Arc<Mutex<Option<Opened>>>),
}

impl Origin {
    pub(super) fn again(open: impl Fn() -> io::Result<Opened> + Send + Sync + 'static) -> Self {
        Self::Again(Arc::new(open))
    }

    pub(super) fn once(source: Opened) -> Self {
        Self::Once(Arc::new(Mutex::new(Some(source))))
    }

    /// The source, at its start
    ///
    /// Errors: it cannot be opened, or was read before.
    pub(super) fn open(&self) -> io::Result<Opened> {
        match self {
            Self::Again(open) => open(),
            Self::Once(source) => {
                let source = source.lock().unwrap_or_else(PoisonError::into_inner).take();
                source.ok_or_else(|| io::Error::other("the body can be read once, and was read before"))
            }
        }
    }
}
