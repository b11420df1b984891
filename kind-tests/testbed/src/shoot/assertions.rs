//! What a scenario reads of a shoot, and what it waits for.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::Utc;

use super::ShootCluster;
use crate::audit::{Asked, Mark};
use crate::gardener::PROBE_USER;
use crate::log::tail;
use crate::objects::name;
use crate::seed::{JournalEntry, ReplicaState};
use crate::wait::eventually;

impl ShootCluster {
    /// The last states that the journal knows, without a request.
    pub fn states(&self) -> BTreeMap<String, ReplicaState> {
        self.seed.journal().states(&self.namespace)
    }

    /// What happened to the Deployments, from the beginning.
    pub fn history(&self) -> Vec<JournalEntry> {
        self.seed.journal().of(&self.namespace)
    }

    /// The names of resources in the order in which they first came to be so, from `from` on.
    pub fn order(&self, from: usize, so: impl Fn(&ReplicaState) -> bool) -> Vec<String> {
        let mut order = Vec::new();
        for entry in self.history().into_iter().skip(from) {
            if entry.state.as_ref().is_some_and(&so) && !order.contains(&entry.name) {
                order.push(entry.name);
            }
        }
        order
    }

    /// The prober's requests to the shoot.
    pub fn asked(&self) -> Vec<Asked> {
        self.plane.asked_by(PROBE_USER, &Mark::default())
    }

    /// The prober's requests to the seed in this shoot's namespace.
    pub fn asked_of_seed(&self) -> Vec<Asked> {
        let mut asked = self.seed.asked();
        asked.retain(|asked| asked.namespace == self.namespace);
        asked
    }

    /// Waits for this many complete probes more: lists of leases that were answered. One more than
    /// that is awaited: the first may have been under way.
    pub async fn after_probes(&self, count: usize) -> Result<()> {
        let is_probe = |asked: &&Asked| asked.resource == "leases" && asked.code == 200;
        let probes = || self.asked().iter().filter(is_probe).count();
        let begin = probes();
        self.eventually("more probes", async || {
            let more = probes() - begin;
            ensure!(more > count, "{more} of {count}");
            Ok(())
        })
        .await
    }

    /// Waits until every lease is younger than `age`.
    pub async fn leases_younger_than(&self, age: Duration) -> Result<()> {
        self.eventually("young leases", async || {
            for stamp in self.nodes.stamps().await? {
                let old = (Utc::now() - stamp).to_std().unwrap_or_default();
                ensure!(old < age, "one is {old:?} old");
            }
            Ok(())
        })
        .await
    }

    /// Waits until these Deployments are at 0, marked, each with its memory.
    pub async fn held_down<T: ToString>(&self, memories: &[(&str, T)]) -> Result<()> {
        let is = |state: &ReplicaState, memory: &T| state.is_held_down(&memory.to_string());
        self.all("all held down", memories, is).await
    }

    /// Waits until these Deployments have their replicas back, with no trace of the prober.
    pub async fn free_at(&self, replicas: &[(&str, i64)]) -> Result<()> {
        let is = |state: &ReplicaState, replicas: &i64| state.is_free_at(*replicas);
        self.all("all restored", replicas, is).await
    }

    async fn all<T>(
        &self,
        what: &str,
        wanted: &[(&str, T)],
        is: impl Fn(&ReplicaState, &T) -> bool,
    ) -> Result<()> {
        self.eventually(what, async || {
            let deployments = self.seed.api().list(&self.deployments()).await?;
            let state = |object| (name(object).to_owned(), ReplicaState::of(object));
            let now = deployments.iter().map(state).collect();
            // The history must have it, too.
            for states in [now, self.states()] {
                for (name, wanted) in wanted {
                    let state = states.get(*name).with_context(|| format!("no {name}"))?;
                    ensure!(is(state, wanted), "{name}: {state:?}");
                }
            }
            Ok(())
        })
        .await
    }

    /// The writes to replicas, memories and markers since this entry of the history. That pods
    /// follow is none.
    pub fn writes_since(&self, from: usize) -> Vec<JournalEntry> {
        let mut last = BTreeMap::new();
        let mut writes = Vec::new();
        for (index, entry) in self.history().into_iter().enumerate() {
            let mut wanted = entry.state.clone();
            wanted.iter_mut().for_each(|state| state.ready = 0);
            let before = last.insert(entry.name.clone(), wanted.clone());
            if index >= from && before != Some(wanted) {
                writes.push(entry);
            }
        }
        writes
    }

    /// Fails if any of the Deployments was written to since this entry of the history.
    pub fn untouched_since(&self, from: usize) -> Result<()> {
        let touched = self.writes_since(from);
        ensure!(touched.is_empty(), "{touched:?}\n{}", self.story());
        Ok(())
    }

    /// [`eventually`], with this shoot's story when it fails.
    pub async fn eventually<T>(
        &self,
        what: &str,
        check: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        eventually(what, check).await.with_context(|| self.story())
    }

    /// What happened, for a person who reads why a scenario failed. The prober's whole log is kept
    /// in the folder artefacts.
    pub fn story(&self) -> String {
        let (log, namespace) = (self.seed.log(), &self.namespace);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../artefacts");
        let kept = folder.join(format!("{namespace}.log"));
        let _ = std::fs::create_dir_all(folder).and_then(|()| std::fs::copy(&log, &kept));
        format!(
            "--- {namespace}\nhistory:\n{}\nthe prober's log about it, kept as {}:\n{}",
            lines(&self.history()),
            kept.display(),
            tail(&log, 25, namespace),
        )
    }
}

fn lines(entries: &[JournalEntry]) -> String {
    let line = |entry: &JournalEntry| {
        let seconds = (entry.at - entries[0].at).as_secs_f64();
        format!("  {seconds:7.2} s  {}: {:?}\n", entry.name, entry.state)
    };
    entries.iter().map(line).collect()
}
