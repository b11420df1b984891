//! What the soak and the kills have in common: how a write of the watchdog is judged, and the pods that its weeder looks after.
//!
//! None of it shares code with the watchdog.

pub mod pods;
pub mod writes;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks it, also after somebody who held it has panicked: that is reported where its task is awaited.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
