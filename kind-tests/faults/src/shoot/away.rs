//! An API server that is away for everyone, as when its etcd is started again: nobody is answered, and no lease is renewed.

use std::time::Duration;

use testbed::api::{Fault, MemoryApi, Network, When};
use tokio::time::{Instant, sleep};

use super::Shoot;

/// How it refuses.
#[derive(Clone, Copy, Debug)]
pub enum Refusal {
    /// It answers, and says that it cannot serve.
    Unavailable,
    /// Nobody listens.
    Refused,
}

impl Shoot {
    /// Its API server, which is in memory, is away for a while. All this time passes, also when rest is called for: one that is away
    /// for a moment only may stay unnoticed between two looks, and for that nothing is promised.
    pub async fn be_away(&self, api: &MemoryApi, refusal: Refusal, time: Duration) {
        let fault = match refusal {
            Refusal::Unavailable => Some(api.faults().add(When::any(), Fault::status(503))),
            Refusal::Refused => {
                api.set_network(Network::Refused);
                None
            }
        };
        self.record().leave(Instant::now());
        sleep(time).await;
        match fault {
            Some(id) => api.faults().remove(id),
            None => api.set_network(Network::Up),
        }
        self.record().come_back(Instant::now());
    }
}
