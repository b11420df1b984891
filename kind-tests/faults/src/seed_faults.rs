//! What happens to all shoots at once: the seed's API server is ill, agents are killed and suspended, configs change.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use testbed::api::{Fault, Network, Record as Request, When};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::agents::Agents;
use crate::agents::replica::Replica;
use crate::pace::{HAND_OVER, WINDOW};
use crate::rng::Rng;
use crate::world::World;

/// After a fault watches begin anew, with waits of up to 2 s (D-27), and a Lease that has lapsed is taken.
const RECOVERY: Duration = Duration::from_secs(5);

/// The story of the seed, or of the agents.
pub struct SeedFaults {
    pub world: Arc<World>,
    pub agents: Arc<Agents>,
    pub rng: Rng,
    pub rest: watch::Receiver<bool>,
}

#[derive(Clone, Copy, Debug)]
enum Ill {
    Throttled,
    ServerError,
    WritesFail,
    WritesConflictLate,
    AnswersLost,
    WritesHang,
    WritesSlow,
    ListsFail,
    ElectionFails,
    Reset,
    Cut,
    WatchesBreak,
    Compacted,
    Refused,
    Silent,
}

const ILLS: [Ill; 15] = [
    Ill::Throttled,
    Ill::ServerError,
    Ill::WritesFail,
    Ill::WritesConflictLate,
    Ill::AnswersLost,
    Ill::WritesHang,
    Ill::WritesSlow,
    Ill::ListsFail,
    Ill::ElectionFails,
    Ill::Reset,
    Ill::Cut,
    Ill::WatchesBreak,
    Ill::Compacted,
    Ill::Refused,
    Ill::Silent,
];

impl SeedFaults {
    fn resting(&self) -> bool {
        *self.rest.borrow()
    }

    async fn pause(&mut self, time: Duration) {
        let until = Instant::now() + time;
        timeout_at(until, self.rest.wait_for(|rest| *rest)).await.ok();
    }

    /// Everybody's record gets a line.
    fn note_all(&self, event: &str) {
        for shoot in &self.world.shoots {
            shoot.note(event);
        }
    }

    /// The seed falls ill now and then. `long` illnesses may cost an agent the lead.
    pub async fn seed(&mut self, long: bool) {
        loop {
            let calm = self.rng.seconds(12.0, 30.0);
            self.pause(calm).await;
            if self.resting() {
                return;
            }
            self.ill(long).await;
        }
    }

    async fn ill(&mut self, long: bool) {
        let ill = *self.rng.pick(&ILLS);
        self.world.ledger.count("seed faults");
        self.note_all(&format!("SEED: {ill:?}"));
        let seed = &self.world.seed;
        match ill {
            Ill::Cut | Ill::WatchesBreak | Ill::Compacted => {
                self.world.disturbances.seed(|disturbance| disturbance.begin());
                match ill {
                    Ill::Cut => seed.cut_connections(),
                    Ill::WatchesBreak => seed.store().break_watches(),
                    _ => {
                        seed.store().compact();
                        seed.store().break_watches();
                    }
                }
                return self.world.disturbances.seed(|disturbance| disturbance.end(Instant::now() + RECOVERY));
            }
            _ => {}
        }
        let scales = |request: &Request| request.is_write() && request.resource.starts_with("deployments.apps");
        let writes = || When::matches(move |request| scales(request) || (request.is_write() && request.resource == "pods"));
        // An agent may lose the lead when it cannot renew its Lease for 7 s.
        let everything = || When::matches(move |request| long || !request.resource.starts_with("leases"));
        let fault = match ill {
            Ill::Throttled => Some((everything(), Fault::throttle(1))),
            Ill::ServerError => Some((everything(), Fault::status(503))),
            Ill::WritesFail => Some((writes(), Fault::status(500))),
            Ill::WritesConflictLate => Some((writes(), Fault::status(409))),
            Ill::AnswersLost => Some((writes(), Fault::CloseAfter)),
            Ill::WritesHang => Some((writes(), Fault::StallAfter)),
            Ill::WritesSlow => Some((writes(), Fault::Delay(Duration::from_millis(700)))),
            Ill::ListsFail => {
                Some((When::matches(|request| request.verb == "list" || request.verb == "watch"), Fault::status(500)))
            }
            Ill::ElectionFails => Some((When::matches(|request| request.resource.starts_with("leases")), Fault::status(500))),
            Ill::Reset => Some((everything(), Fault::CloseBefore)),
            _ => None,
        };
        self.disturb_leaders();
        self.world.disturbances.seed(|disturbance| disturbance.begin());
        let id = fault.map(|(when, fault)| seed.faults().add(when, fault));
        match ill {
            Ill::Refused => seed.set_network(Network::Refused),
            Ill::Silent => seed.set_network(Network::Silent),
            _ => {}
        }
        if matches!(ill, Ill::ListsFail) {
            seed.store().break_watches();
        }
        // Short ones cannot keep a leader from renewing within renewDeadline.
        let time = match (long, ill) {
            (false, Ill::Refused | Ill::Silent | Ill::ElectionFails) => self.rng.seconds(0.2, 1.2),
            (false, _) => self.rng.seconds(0.5, 3.0),
            (true, _) => self.rng.seconds(0.5, 11.0),
        };
        self.pause(time).await;
        let seed = &self.world.seed;
        if let Some(id) = id {
            seed.faults().remove(id);
        }
        seed.set_network(Network::Up);
        self.disturb_leaders();
        self.note_all("SEED: well again");
        let recovery = if long { HAND_OVER } else { RECOVERY };
        self.world.disturbances.seed(|disturbance| disturbance.end(Instant::now() + recovery));
    }

    fn disturb_leaders(&self) {
        self.agents.all().for_each(|replica| replica.disturb());
    }

    /// Agents are killed, asked to end, suspended.
    pub async fn processes(&mut self) -> Result<()> {
        loop {
            let calm = self.rng.seconds(10.0, 24.0);
            self.pause(calm).await;
            if self.resting() {
                return Ok(());
            }
            let everyone: Vec<Arc<Replica>> = self.agents.all().cloned().collect();
            let replica = self.rng.pick(&everyone).clone();
            self.world.ledger.count("process faults");
            let what = self.rng.number(0..=3);
            let word = ["SIGTERM", "SIGKILL", "SIGSTOP for a moment", "SIGSTOP for long"][usize::try_from(what)?];
            self.note_all(&format!("AGENT {}: {word}", replica.name));
            match what {
                0 => replica.terminate().await?,
                1 => replica.kill()?,
                2 => replica.suspend(self.rng.seconds(0.2, 3.0)).await?,
                _ => replica.suspend(self.rng.seconds(3.0, 12.0)).await?,
            }
            self.note_all(&format!("AGENT {}: done", replica.name));
        }
    }

    /// Configs change, some of them into something that must be refused.
    pub async fn configs(&mut self) -> Result<()> {
        loop {
            let calm = self.rng.seconds(15.0, 35.0);
            self.pause(calm).await;
            if self.resting() {
                return Ok(());
            }
            self.world.ledger.count("config changes");
            let agents = self.agents.clone();
            match self.rng.number(0..=3) {
                0 => {
                    self.note_all("CONFIG: probeInterval 3s");
                    agents.write_prober_config("3s")?;
                }
                1 => {
                    self.note_all("CONFIG: the prober's is refused");
                    self.world.configs_good.send_replace(false);
                    std::fs::write(&agents.prober_config, "probeInterval: 30")?;
                }
                2 => {
                    self.note_all("CONFIG: the weeder's is refused");
                    self.world.configs_good.send_replace(false);
                    std::fs::write(&agents.weeder_config, "watchDuration: -1s")?;
                }
                _ => {
                    self.note_all("CONFIG: watchDuration");
                    agents.write_weeder_config(WINDOW - Duration::from_secs(1))?;
                    self.world.weeder_oracle.begin_anew();
                }
            }
            let time = self.rng.seconds(3.0, 10.0);
            self.pause(time).await;
            self.note_all("CONFIG: as before");
            agents.write_prober_config("2s")?;
            agents.write_weeder_config(WINDOW)?;
            self.world.configs_good.send_replace(true);
            self.world.weeder_oracle.begin_anew();
        }
    }
}
