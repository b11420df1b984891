//! Whether the weeder still does its work, and knows enough to do it: what `/healthz` and `/readyz`
//! ask.

use std::time::Duration;

use common::health::Check;
use common::view::MAX_BLIND;
use tokio::sync::watch;
use tokio::time::Instant;

/// The work takes a turn at least this often, even when nothing happens.
pub const BEAT: Duration = Duration::from_secs(5);
/// After so long without a turn it hangs: six beats, and less than a liveness probe's usual three
/// failures in 30 s.
const STALLED: Duration = Duration::from_secs(30);

/// Clones share it.
#[derive(Clone, Debug)]
pub struct Pulse(watch::Sender<State>);

#[derive(Debug)]
struct State {
    turn: Instant,
    /// The last turn at which everything was seen.
    seen: Option<Instant>,
}

impl Default for Pulse {
    fn default() -> Self {
        Self(watch::Sender::new(State {
            turn: Instant::now(),
            seen: None,
        }))
    }
}

impl Pulse {
    /// The work takes a turn; `observes` says whether what is known is true now.
    pub fn beat(&self, observes: bool) {
        let now = Instant::now();
        self.0.send_modify(|state| {
            state.turn = now;
            state.seen = if observes { Some(now) } else { state.seen };
        });
    }

    /// For `/healthz`: the work goes on.
    pub fn live(&self) -> Check {
        let pulse = self.clone();
        Check::new("weeding", move || match pulse.0.borrow().turn.elapsed() {
            stalled if stalled > STALLED => Err(format!("no turn for {} s", stalled.as_secs())),
            _ => Ok(()),
        })
    }

    /// For `/readyz`: EndpointSlices and pods are known, that is, they were seen within
    /// [`MAX_BLIND`] (D-27).
    pub fn ready(&self) -> Check {
        let pulse = self.clone();
        Check::new("watches", move || {
            match pulse.0.borrow().seen.map(|seen| seen.elapsed()) {
                None => Err("EndpointSlices and pods have not been listed yet".to_owned()),
                Some(blind) if blind >= MAX_BLIND => Err(format!(
                    "EndpointSlices and pods have not been seen for {} s",
                    blind.as_secs()
                )),
                Some(_) => Ok(()),
            }
        })
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

    #[tokio::test(start_paused = true)]
    async fn it_is_ready_from_the_first_lists_until_nothing_was_seen_for_a_minute() {
        let pulse = Pulse::default();
        let ready = pulse.ready();
        pulse.beat(false);
        assert!((ready.ask)().is_err());
        pulse.beat(true);
        tokio::time::advance(MAX_BLIND - BEAT).await;
        pulse.beat(false);
        assert_eq!((ready.ask)(), Ok(()));
        tokio::time::advance(BEAT).await;
        assert_eq!(
            (ready.ask)(),
            Err("EndpointSlices and pods have not been seen for 60 s".to_owned())
        );
        pulse.beat(true);
        assert_eq!((ready.ask)(), Ok(()));
    }
}
