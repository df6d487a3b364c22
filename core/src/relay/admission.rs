//! How many connections to providers may be open, and whether any may still be opened (rule RLY-6).

use super::answer::Code;

/// Decides whether another connection to a provider may be opened
///
/// Decisions only: whoever opens connections asks before, and says when each is closed or left.
///
/// ```
/// use steadfast::relay::{Admission, Code};
///
/// let mut admission = Admission::new(Some(1));
/// assert_eq!(admission.admit(), Ok(()));
/// assert_eq!(admission.admit(), Err(Code::GatewayOverloaded));
/// admission.left();
/// assert_eq!(admission.admit(), Ok(()));
/// admission.drain();
/// assert_eq!(admission.admit(), Err(Code::GatewayDraining));
/// assert!(!admission.is_drained());
/// admission.left();
/// assert!(admission.is_drained());
/// ```
#[derive(Clone, Debug)]
pub struct Admission {
    most: Option<usize>,
    open: usize,
    is_draining: bool,
    refused: u64,
}

impl Admission {
    /// So many at once, or as many as there are calls
    pub const fn new(most: Option<usize>) -> Self {
        Self { most, open: 0, is_draining: false, refused: 0 }
    }

    /// Another one is wanted
    ///
    /// Errors: what the app is told instead; nothing was sent for it.
    pub fn admit(&mut self) -> Result<(), Code> {
        let refusal = if self.is_draining {
            Code::GatewayDraining
        } else if self.most.is_some_and(|most| self.open >= most) {
            Code::GatewayOverloaded
        } else {
            self.open += 1;
            return Ok(());
        };
        self.refused += 1;
        Err(refusal)
    }

    /// One of them is closed, or left to a later exchange
    pub fn left(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// The cap is this from now on; what is open stays open
    pub fn limit(&mut self, most: Option<usize>) {
        self.most = most;
    }

    /// None is admitted any more
    pub fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Whether none is admitted any more
    pub fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// Whether none is admitted any more, and none is left
    pub fn is_drained(&self) -> bool {
        self.is_draining && self.open == 0
    }

    /// How many may be in use at once; `None` for as many as there are calls
    pub fn most(&self) -> Option<usize> {
        self.most
    }

    /// How many are in use
    pub fn open(&self) -> usize {
        self.open
    }

    /// How many were refused
    pub fn refused(&self) -> u64 {
        self.refused
    }
}
