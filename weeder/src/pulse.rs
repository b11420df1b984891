//! Whether the weeder still does its work, and knows enough to do it: what `/healthz` and `/readyz` ask.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use common::health::Check;
use tokio::time::Instant;

/// The work takes a turn at least this often, even when nothing happens.
pub const BEAT: Duration = Duration::from_secs(5);
/// After so long without a turn it hangs: six beats, and less than a liveness probe's usual three failures in 30 s.
const STALLED: Duration = Duration::from_secs(30);

/// The pulse of the work. Clones share it.
#[derive(Clone, Debug)]
pub struct Pulse(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    last: Instant,
    filled: bool,
}

impl Default for Pulse {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State { last: Instant::now(), filled: false })))
    }
}

impl Pulse {
    /// The work takes a turn; `filled` says whether everything has been listed once.
    pub fn beat(&self, filled: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State { last: Instant::now(), filled };
    }

    /// For `/healthz`: the work goes on.
    pub fn live(&self) -> Check {
        let pulse = self.clone();
        Check::new("weeding", move || match pulse.state().0 {
            stalled if stalled > STALLED => Err(format!("no turn for {} s", stalled.as_secs())),
            _ => Ok(()),
        })
    }

    /// For `/readyz`: EndpointSlices and pods are known.
    pub fn ready(&self) -> Check {
        let pulse = self.clone();
        Check::new("watches", move || match pulse.state().1 {
            true => Ok(()),
            false => Err("EndpointSlices and pods have not been listed yet".to_owned()),
        })
    }

    fn state(&self) -> (Duration, bool) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (state.last.elapsed(), state.filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn without_a_turn_for_half_a_minute_the_work_is_not_live() {
        let pulse = Pulse::default();
        let live = pulse.live();
        tokio::time::advance(STALLED).await;
        assert_eq!((live.ask)(), Ok(()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((live.ask)(), Err("no turn for 31 s".to_owned()));
        pulse.beat(false);
        assert_eq!((live.ask)(), Ok(()));
    }

    #[tokio::test]
    async fn it_is_ready_once_everything_was_listed() {
        let pulse = Pulse::default();
        let ready = pulse.ready();
        assert!((ready.ask)().is_err());
        pulse.beat(true);
        assert_eq!((ready.ask)(), Ok(()));
    }
}
