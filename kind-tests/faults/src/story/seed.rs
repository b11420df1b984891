//! What happens to all shoots at once: the seed's API server fails, agents are killed and
//! suspended, configs change.

use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::Result;
use api_server::{Fault, MemoryApi, Network, Record as Request, When};
use nix::sys::signal::Signal;
use testbed::agent::AgentKind;
use tokio::time::Instant;

use super::actor::Actor;
use super::injected_fault::InjectedFault;
use crate::agents::running::CutOff;
use crate::agents::{Agents, prober_config, weeder_config};
use crate::pace::{HAND_OVER, WINDOW};
use crate::world::SoakWorld;

/// After a fault watches are restarted, with waits of up to 2 s (D-27), and a Lease that has lapsed
/// is taken.
const RECOVERY: Duration = Duration::from_secs(5);

/// What happens to a process.
#[derive(Clone, Copy, Debug)]
enum ProcessFault {
    Terminated,
    Killed,
    CutOff(CutOff),
}

/// The story of the seed, of the processes, or of the configs.
pub struct SeedFaults<'a> {
    pub world: &'a SoakWorld,
    pub agents: &'a Agents,
    pub actor: Actor,
}

/// The seed's faults, each with the seconds that it takes at most where no agent may lose the
/// lead: it does when it cannot renew its Lease for 7 s.
fn seed_faults(may_cost_the_lead: bool) -> [(&'static str, f64, InjectedFault); 15] {
    let writes = |request: &Request| {
        request.is_write()
            && (request.resource.starts_with("deployments.apps") || request.resource == "pods")
    };
    let writes = |fault| InjectedFault::Answers(When::matches(writes), fault);
    let of_election = |request: &Request| request.resource.starts_with("leases");
    let all = |fault| {
        InjectedFault::Answers(
            When::matches(move |request| may_cost_the_lead || !of_election(request)),
            fault,
        )
    };
    [
        ("throttled", 3.0, all(Fault::throttle(1))),
        ("server error", 3.0, all(Fault::status(503))),
        ("writes fail", 3.0, writes(Fault::status(500))),
        ("writes conflict", 3.0, writes(Fault::status(409))),
        ("answers to writes are lost", 3.0, writes(Fault::CloseAfter)),
        ("writes hang", 3.0, writes(Fault::StallAfter)),
        (
            "writes are slow",
            3.0,
            writes(Fault::Delay(Duration::from_millis(700))),
        ),
        ("lists fail", 3.0, InjectedFault::Lists(Fault::status(500))),
        (
            "the election fails",
            1.2,
            InjectedFault::Answers(When::matches(of_election), Fault::status(500)),
        ),
        ("reset", 3.0, all(Fault::CloseBefore)),
        ("refused", 1.2, InjectedFault::Network(Network::Refused)),
        ("silent", 1.2, InjectedFault::Network(Network::Silent)),
        (
            "connections are cut",
            0.0,
            InjectedFault::Moment(MemoryApi::cut_connections),
        ),
        (
            "watches break",
            0.0,
            InjectedFault::Moment(|seed| seed.store().break_watches()),
        ),
        ("compacted", 0.0, InjectedFault::Moment(compact)),
    ]
}

fn compact(seed: &MemoryApi) {
    seed.store().compact();
    seed.store().break_watches();
}

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
    pub async fn seed(mut self, long: bool) {
        let oracle = &self.world.oracle;
        while self.another(12.0..=30.0).await {
            let (name, most, injected) = self.actor.pick(seed_faults(long));
            let lasts = !matches!(injected, InjectedFault::Moment(_));
            let time = self.actor.seconds(if long {
                0.5..=11.0
            } else {
                0.2..=most.max(0.2)
            });
            oracle.violations.count("seed faults");
            self.note_all(&format!("SEED: {name}"));
            oracle.disturbances().seed.begin();
            let lasting = async {
                self.agents.0.iter().for_each(|replica| replica.disturb());
                self.actor.pause(time).await;
                self.agents.0.iter().for_each(|replica| replica.disturb());
            };
            injected.during(&self.world.seed, lasting).await;
            self.note_all("SEED: as before");
            let recovery = if long && lasts { HAND_OVER } else { RECOVERY };
            oracle.disturbances().seed.end(Instant::now() + recovery);
        }
    }

    /// Agents are killed, asked to end, suspended or cut off.
    pub async fn processes(mut self) {
        while self.another(10.0..=24.0).await {
            let replica = self.actor.pick(&self.agents.0);
            self.world.oracle.violations.count("process faults");
            let all = ProcessFault::CutOff(CutOff::All);
            let (fault, from, to) = self.actor.pick([
                (ProcessFault::Terminated, 0.0, 0.0),
                (ProcessFault::Killed, 0.0, 0.0),
                (all, 0.2, 3.0),
                (all, 3.0, 12.0),
                (all, 12.0, 90.0),
                (ProcessFault::CutOff(CutOff::Seed), 1.0, 90.0),
                (ProcessFault::CutOff(CutOff::Shoots), 1.0, 90.0),
            ]);
            let time = self.actor.seconds(from..=to);
            self.note_all(&format!("AGENT {}: {fault:?} for {time:.1?}", replica.name));
            match fault {
                ProcessFault::Terminated => replica.terminate().await,
                ProcessFault::Killed => replica.signal(Signal::SIGKILL),
                ProcessFault::CutOff(from) => replica.cut_off(from, time).await,
            }
            self.note_all(&format!("AGENT {}: done", replica.name));
        }
    }

    /// Configs change, some of them into something that must be refused.
    pub async fn configs(mut self) -> Result<()> {
        let oracle = &self.world.oracle;
        while self.another(15.0..=35.0).await {
            let changes = [
                (
                    "probeInterval",
                    true,
                    AgentKind::Prober,
                    prober_config("3s"),
                ),
                (
                    "the prober's is bad",
                    false,
                    AgentKind::Prober,
                    "probeInterval: 30".to_owned(),
                ),
                (
                    "watchDuration",
                    true,
                    AgentKind::Weeder,
                    weeder_config(WINDOW - Duration::from_secs(1)),
                ),
                (
                    "the weeder's is bad",
                    false,
                    AgentKind::Weeder,
                    "watchDuration: -1s".to_owned(),
                ),
            ];
            let (what, good, kind, text) = self.actor.pick(changes);
            oracle.violations.count("config changes");
            self.note_all(&format!("CONFIG: {what}"));
            self.world.configs_good.send_replace(good);
            self.agents.configure(kind, &text)?;
            if good && kind == AgentKind::Weeder {
                oracle.disturbances().weeder_started = Instant::now();
            }
            self.actor.wait(3.0..=10.0).await;
            self.note_all("CONFIG: as before");
            self.agents.configure_as_usual()?;
            self.world.configs_good.send_replace(true);
            oracle.disturbances().weeder_started = Instant::now();
        }
        Ok(())
    }
}
