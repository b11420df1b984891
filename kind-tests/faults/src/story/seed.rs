//! What happens to all shoots at once: the seed's API server fails, agents are killed and
//! suspended, configs change.

use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::actor::Actor;
use crate::agents::Agents;
use crate::agents::running::{ProcessFault, Ways};
use crate::pace::HAND_OVER;
use crate::world::SoakWorld;

/// After a fault watches are restarted, with waits of up to 2 s (D-27), and a Lease that has lapsed
/// is taken.
const RECOVERY: Duration = Duration::from_secs(5);

/// The story of the seed, of the processes, or of the configs.
pub struct SeedFaults<'a> {
    pub world: &'a SoakWorld,
    pub agents: &'a Agents,
    pub actor: Actor,
}

/// The seed's faults, each with the seconds that it takes at most where no agent may lose the
/// lead: it does when it cannot renew its Lease for 7 s.
const FAULTS: [(&str, f64); 15] = [
    ("* !leases: throttles 1", 3.0),
    ("* !leases: 503", 3.0),
    ("write deployments|pods: 500", 3.0),
    ("write deployments|pods: 409", 3.0),
    ("write deployments|pods: closes after", 3.0),
    ("write deployments|pods: stalls after", 3.0),
    ("write deployments|pods: delays 0.7", 3.0),
    ("list|watch *: 500", 3.0),
    ("* leases: 500", 1.2),
    ("* !leases: closes", 3.0),
    ("refused", 1.2),
    ("silent", 1.2),
    ("cut", 0.0),
    ("watches break", 0.0),
    ("compacted", 0.0),
];

/// Changes of the configs: something, and what comes in its place.
const CONFIGS: [(&str, &str); 2] = [
    ("probeInterval: 2s", "probeInterval: 3s"),
    ("watchDuration: 12s", "watchDuration: 11s"),
];

impl SeedFaults<'_> {
    /// Everybody's record gets a line.
    fn note_all(&self, event: &str) {
        self.world.shoots.iter().for_each(|shoot| shoot.note(event));
    }

    /// Waits for the next fault; whether there is one before the round is over.
    async fn another(&mut self, calm: RangeInclusive<f64>) -> bool {
        self.actor.wait(calm).await;
        !self.actor.is_over()
    }

    /// The seed fails now and then, for so long that it may cost an agent the lead, or not.
    pub async fn seed(mut self, long: bool) -> Result<()> {
        while self.another(12.0..=30.0).await {
            let (fault, most) = self.actor.pick(FAULTS);
            let fault = match long {
                // The election may fail, too.
                true => fault.replace("!leases", "*"),
                false => fault.to_owned(),
            };
            let time = self.actor.seconds(match (most, long) {
                (0.0, _) => 0.0..=0.0,
                (_, true) => 0.5..=11.0,
                (most, false) => 0.2..=most,
            });
            self.world.oracle.violations.count("seed faults");
            self.note_all(&format!("SEED: {fault}"));
            if fault.starts_with("list|watch") {
                self.world.seed.store().break_watches();
            }
            self.world.fail(&fault)?;
            self.actor.pause(time).await;
            self.note_all("SEED: as before");
            let recovery = if long && most > 0.0 {
                HAND_OVER
            } else {
                RECOVERY
            };
            self.world.end_faults(recovery);
        }
        Ok(())
    }

    /// Agents are killed, asked to end, suspended or cut off.
    pub async fn processes(mut self) {
        while self.another(10.0..=24.0).await {
            let replica = self.actor.pick(&self.agents.0);
            self.world.oracle.violations.count("process faults");
            let all = ProcessFault::CutOff(Ways::All);
            let (fault, from, to) = self.actor.pick([
                (ProcessFault::Terminated, 0.0, 0.0),
                (ProcessFault::Killed, 0.0, 0.0),
                (all, 0.2, 3.0),
                (all, 3.0, 12.0),
                (all, 12.0, 90.0),
                (ProcessFault::CutOff(Ways::ToSeed), 1.0, 90.0),
                (ProcessFault::CutOff(Ways::ToShoots), 1.0, 90.0),
            ]);
            let time = self.actor.seconds(from..=to);
            self.note_all(&format!("AGENT {}: {fault:?} for {time:.1?}", replica.name));
            match fault {
                ProcessFault::Terminated => replica.terminate().await,
                ProcessFault::CutOff(ways) => replica.cut_off(ways, time).await,
                fault => replica.strike(fault),
            }
            self.note_all(&format!("AGENT {}: done", replica.name));
        }
    }

    /// Configs change.
    pub async fn configs(mut self) -> Result<()> {
        let oracle = &self.world.oracle;
        while self.another(15.0..=35.0).await {
            let (old, new) = self.actor.pick(CONFIGS);
            oracle.violations.count("config changes");
            self.note_all(&format!("CONFIG: {new}"));
            self.agents.configure(old, new)?;
            oracle.disturbances().weeder_started = Instant::now();
            self.actor.wait(3.0..=10.0).await;
            self.note_all("CONFIG: as before");
            self.agents.configure(new, old)?;
            oracle.disturbances().weeder_started = Instant::now();
        }
        Ok(())
    }
}
