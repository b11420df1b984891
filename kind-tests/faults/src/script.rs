//! Stories in words, for whole agents: what happens step by step, and what comes of it.
//!
//! ```text
//! prober; probes 3; grace 300; cut; probes 8; written; grace 8; all held; found MissedOutages
//! '- happens at once             '- what is so within a while, or else at once     '- by the oracle
//! ```
//! What happens to a shoot alone is told in the words of [`SoakShoot::act`], as chance does.
//! At the end of each story the oracle must have found nothing else, and nobody a credential.

mod acts;
mod checks;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api_server::{FaultId, MemoryApi, Record};
use serde_json::json;
use testbed::PATIENCE;
use testbed::log::tail;
use tokio::time::{sleep, timeout};

pub use self::checks::scales;
use self::checks::soon;
use crate::agents::replica::AgentReplica;
use crate::agents::running::{ProcessFault, Ways};
use crate::life::{Life, on_paused_clock};
use crate::pace::HAND_OVER;
use crate::shoot::{DEPENDENTS, SoakShoot, long};
use crate::story::injected_fault::{number, requests, seconds};

/// With it the first shoot has three nodes, two kube-controller-managers and one
/// machine-controller-manager.
const SEED: u64 = 40;
/// Within this time an agent that is asked to stop has stopped (rule 85).
const STOP: Duration = Duration::from_secs(5);

/// What a story shows, and its steps.
pub type Row = (&'static str, &'static str);

/// Tells each story in a world of its own with so many shoots.
pub fn tell(shoots: u16, rows: &[Row]) {
    let mut wrong = Vec::new();
    for &(what, story) in rows {
        let told = told(shoots, async move |script| script.tell(story).await);
        wrong.extend(told.err().map(|error| format!("{what}: {error:#}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Tells a story in such a world that has steps for which there are no words.
pub fn told<T: Send + 'static>(
    shoots: u16,
    go_on: impl AsyncFnOnce(&mut Script) -> Result<T> + Send + 'static,
) -> Result<T> {
    on_paused_clock(SEED, async move || {
        let mut script = Script::new(shoots, None).await?;
        let told = go_on(&mut script).await?;
        script.end().await?;
        Ok(told)
    })
}

/// A story as far as it has been told.
pub struct Script {
    pub life: Life,
    /// Flags and environment variables of agents that start from now on.
    pub flags: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// The last fault, and whether the seed has it.
    fault: Option<(bool, FaultId)>,
    /// What the oracle is to find.
    found: Vec<String>,
}

impl Script {
    /// The beginning: all shoots are known, and nobody is at work.
    pub async fn new(shoots: u16, binary: Option<&Path>) -> Result<Self> {
        let life = Life::new(SEED, shoots, binary).await?;
        life.agents
            .configure("watchDuration: 12s", "watchDuration: 5m0s")?;
        Ok(Self {
            life,
            flags: Vec::new(),
            environment: Vec::new(),
            fault: None,
            found: Vec::new(),
        })
    }

    /// Tells these steps.
    pub async fn tell(&mut self, story: &str) -> Result<()> {
        for step in story.split("; ") {
            let told = self.step(step.trim()).await;
            told.with_context(|| format!("at \"{step}\""))?;
        }
        Ok(())
    }

    /// Ends everything.
    pub async fn end(self) -> Result<()> {
        for replica in self.life.agents.0.iter().filter(|one| one.is_running()) {
            stop(replica).await?;
        }
        let events = json!(self.life.world.seed.store().list("events", None));
        self.search("an Event", &events.to_string());
        let expected = self.found;
        let world = self.life.stop().await?;
        let totals = world.oracle.violations.totals();
        let found = totals.found.keys().map(|kind| format!("{kind:?}"));
        let found: Vec<_> = found.collect();
        ensure!(found == expected, "found {:#?}", totals.evidence);
        Ok(())
    }

    /// The first shoot.
    fn shoot(&self) -> &Arc<SoakShoot> {
        &self.life.world.shoots[0]
    }

    fn seed(&self) -> &MemoryApi {
        &self.life.world.seed
    }

    fn replica(&self, name: &str) -> &Arc<AgentReplica> {
        let known = match name {
            "prober" => "prober-a",
            "standby" => "prober-b",
            name => name,
        };
        let mut all = self.life.agents.0.iter();
        all.find(|one| one.name == known).expect("a replica")
    }

    #[rustfmt::skip]
    async fn step(&mut self, step: &str) -> Result<()> {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        let words: Vec<_> = rest.split(' ').collect();
        match verb {
            // Faults: of which requests to whom, and which.
            "seed" => self.fault = self.life.world.fail(rest)?.map(|id| (true, id)).or(self.fault),
            "shoot" => self.fault = self.shoot().fail(rest)?.map(|id| (false, id)).or(self.fault),
            "over" => { self.life.world.shoots.iter().for_each(|shoot| shoot.end_faults()); self.life.world.end_faults(HAND_OVER); }
            "met" => { let (is_seed, id) = self.fault.context("a fault")?; timeout(PATIENCE, self.api(is_seed).faults().met(id, number(rest)?)).await?; }
            "hits" => { let (is_seed, id) = self.fault.context("a fault")?; let hits = self.api(is_seed).faults().hits(id); ensure!(hits == number::<u64>(rest)?, "{hits}"); }
            // Agents.
            "prober" | "standby" | "weeder" => self.replica(verb).start(&self.flags, &self.environment)?,
            "stop" => stop(self.replica(rest)).await?,
            "suspend" => self.replica(rest).strike(ProcessFault::CutOff(Ways::All)),
            "resume" => self.replica(rest).strike(ProcessFault::Back(Ways::All)),
            "flag" => self.flags.push(rest.to_owned()),
            "config" => self.configure(rest)?,
            "only" | "also" => self.allow(words[0], words[1], verb == "only"),
            "hang" => self.replica(rest).strike_unseen(ProcessFault::CutOff(Ways::All)),
            "says" => tracing::trace!(target: "prober", "{rest}"),
            "lease" => self.give_lease(words[0], words[1])?,
            // Time, probes, and other requests.
            _ if rest == "s" => sleep(seconds(verb)?).await,
            "probes" => self.probes(number(rest)?).await?,
            "alone" => { let asked = self.requests(); sleep(seconds(rest)?).await; ensure!(self.requests() == asked, "it was asked"); }
            "frugal" => { let ([shoot, seed], probes) = (self.requests(), number(rest)?); self.probes(probes).await?; ensure!(self.requests() == [shoot + probes, seed], "more"); }
            "asked" => { let (which, count) = rest.split_once(": ").context("no number")?; let asked = self.seed().requests().count(requests(which)); ensure!(asked == number::<usize>(count)?, "{asked}"); }
            "written" => ensure!(self.written() == names(rest), "{:?}", self.written()),
            "writes" => soon(step, async || { ensure!(self.written().len() >= number(rest)?, "{:?}", self.written()); Ok(()) }).await?,
            "rehearsed" => soon(step, async || { let all = self.names_of(Record::is_dry_run); ensure!(all == names(rest), "{all:?}"); Ok(()) }).await?,
            // The shoot.
            "pause-garden" => self.shoot().pause("garden", rest)?,
            "owner" => self.life.world.owner.send_modify(|(says, _)| *says = ["here", "there"].into_iter().find(|name| *name == rest)),
            "owned" => self.check_owner(rest)?,
            "owner-asked" => self.owner_asked(number(rest)?).await?,
            "apply" => drop(self.seed().store().apply(serde_json::from_str(rest)?)?),
            // The dependents.
            "meanwhile" => self.meanwhile(rest)?,
            "all" => for name in DEPENDENTS { self.until(name, rest).await? },
            "kcm" | "mcm" | "ca" | "store" => self.until(long(verb), rest).await?,
            // Pods, by namespace and name, and the Services that they need.
            "meanwhile-pod" => self.meanwhile_pod(words[0], words[1] == "replaced")?,
            "crash" => self.crash(words[0], words.get(1).copied().unwrap_or("apiserver"))?,
            "recover" => for ready in [false, true] { self.turn(&words, ready)? },
            "ready" => self.turn(&words, true)?,
            "unready" => self.turn(&words, false)?,
            "gone" => soon(step, async || { ensure!(!self.has(rest), "it is there"); Ok(()) }).await?,
            "there" | "not-there" => ensure!(self.has(rest) == (verb == "there"), "it is not so"),
            // What is served and said.
            "metric" => self.metric(rest).await?,
            "page" => self.page(words[0], number(words[1])?, &words[2..].join(" ")).await?,
            "status" => self.status(rest).await?,
            "event" => self.event(words[0], &words[1..].join(" ")).await?,
            "log" => soon(step, async || { ensure!(!tail(&self.life.log, 1, rest).is_empty(), "not yet"); Ok(()) }).await?,
            // Wrongs, in the name of a replica.
            "patches" => self.patch(&words).await?,
            "deletes" => self.delete(&words).await?,
            "found" => self.found.push(rest.to_owned()),
            _ => { let shoot = self.life.world.shoots.first(); ensure!(shoot.context("a shoot")?.act(step)?, "nobody knows what that is"); }
        }
        Ok(())
    }
}

async fn stop(replica: &AgentReplica) -> Result<()> {
    replica.strike(ProcessFault::Terminated);
    timeout(STOP, replica.ended()).await?
}

fn names(words: &str) -> Vec<&str> {
    words.split_terminator(' ').map(long).collect()
}
