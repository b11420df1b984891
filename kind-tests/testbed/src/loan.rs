//! Control planes that scenarios have for themselves, one after the other.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::control_plane::{Baseline, ControlPlane};

/// Those that nobody uses now.
pub(crate) type IdlePlanes = Arc<Mutex<Vec<Idle>>>;

/// A control plane that nobody uses, and what it held before its first scenario.
pub(crate) struct Idle {
    pub plane: ControlPlane,
    pub baseline: Baseline,
}

/// Gives a control plane back when it is dropped, whatever a scenario has left there.
pub(crate) struct Loan {
    pool: IdlePlanes,
    lent: Option<Idle>,
}

impl Loan {
    pub(crate) fn new(pool: &IdlePlanes, lent: Idle) -> Self {
        Self {
            pool: Arc::clone(pool),
            lent: Some(lent),
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.pool.lock().extend(self.lent.take());
    }
}
