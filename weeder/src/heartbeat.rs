//! Signs of life of the weeder's loop and of its watches, for `/healthz` and `/readyz`.

use std::time::Duration;

use common::health::Check;
use common::view::MAX_BLIND;
use tokio::sync::watch;
use tokio::time::Instant;

/// The controller's loop turns at least this often, even when nothing happens.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(5);
/// Time without a turn after which it hangs: six heartbeats, and less than a liveness probe's usual
/// three failures in 30 s.
const STALLED: Duration = Duration::from_secs(30);

/// Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat(watch::Sender<Turns>);

#[derive(Debug)]
struct Turns {
    last: Instant,
    /// The last turn at which everything was observed.
    last_observed: Option<Instant>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            last: Instant::now(),
            last_observed: None,
        }
    }
}

impl Heartbeat {
    /// The loop turns; `observes` says whether what is known is true now.
    pub fn beat(&self, observes: bool) {
        self.0.send_modify(|turns| {
            turns.last = Instant::now();
            if observes {
                turns.last_observed = Some(turns.last);
            }
        });
    }

    /// For `/healthz`: the loop turns.
    pub fn live(&self) -> Check {
        let heartbeat = self.clone();
        Check::new("weeding", move || {
            let stalled = heartbeat.0.borrow().last.elapsed();
            if stalled > STALLED {
                return Err(format!("no turn for {} s", stalled.as_secs()));
            }
            Ok(())
        })
    }

    /// For `/readyz`: EndpointSlices and pods were observed within [`MAX_BLIND`] (D-27).
    pub fn ready(&self) -> Check {
        let heartbeat = self.clone();
        Check::new("watches", move || {
            let Some(last) = heartbeat.0.borrow().last_observed else {
                return Err("EndpointSlices and pods have not been listed yet".to_owned());
            };
            let blind = last.elapsed();
            if blind >= MAX_BLIND {
                return Err(format!(
                    "EndpointSlices and pods have not been seen for {} s",
                    blind.as_secs()
                ));
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn without_a_turn_for_half_a_minute_the_work_is_not_live() {
        let heartbeat = Heartbeat::default();
        let live = heartbeat.live();
        tokio::time::advance(STALLED).await;
        assert_eq!((live.ask)(), Ok(()));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((live.ask)(), Err("no turn for 31 s".to_owned()));
        heartbeat.beat(false);
        assert_eq!((live.ask)(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_ready_from_the_first_lists_until_nothing_was_seen_for_a_minute() {
        let heartbeat = Heartbeat::default();
        let ready = heartbeat.ready();
        heartbeat.beat(false);
        assert!((ready.ask)().is_err());
        heartbeat.beat(true);
        tokio::time::advance(MAX_BLIND - HEARTBEAT).await;
        heartbeat.beat(false);
        assert_eq!((ready.ask)(), Ok(()));
        tokio::time::advance(HEARTBEAT).await;
        assert_eq!(
            (ready.ask)(),
            Err("EndpointSlices and pods have not been seen for 60 s".to_owned())
        );
        heartbeat.beat(true);
        assert_eq!((ready.ask)(), Ok(()));
    }
}
