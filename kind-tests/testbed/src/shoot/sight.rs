//! What a scenario sees of a shoot, and what it waits for.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Shoot;
use crate::audit::Asked;
use crate::gardener::PROBE_USER;
use crate::log::tail;
use crate::seed::{Dependent, Entry};
use crate::wait::eventually;

impl Shoot {
    /// The states of the Deployments.
    pub async fn dependents(&self) -> Result<BTreeMap<String, Dependent>> {
        let list = self
            .seed
            .api()
            .get(&self.path("/apis/apps/v1", "deployments"))
            .await?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        Ok(items
            .iter()
            .map(|item| {
                (
                    item["metadata"]["name"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                    Dependent::of(item),
                )
            })
            .collect())
    }

    /// The last states that the journal knows, without a request.
    pub fn states(&self) -> BTreeMap<String, Dependent> {
        let all = self.seed.journal().states();
        let all = all.borrow();
        let ours = all
            .iter()
            .filter(|((namespace, _), _)| *namespace == self.namespace);
        ours.map(|((_, name), state)| (name.clone(), state.clone()))
            .collect()
    }

    /// The state of one Deployment.
    pub async fn dependent(&self, name: &str) -> Result<Dependent> {
        self.dependents()
            .await?
            .remove(name)
            .with_context(|| format!("there is no {name}"))
    }

    /// What happened to the Deployments, from the beginning.
    pub fn history(&self) -> Vec<Entry> {
        self.seed.journal().of(&self.namespace)
    }

    /// The names of resources in the order in which they first came to be so, from `from` on.
    pub fn order(&self, from: usize, so: impl Fn(&Dependent) -> bool) -> Vec<String> {
        let mut order = Vec::new();
        for entry in self.history().into_iter().skip(from) {
            if entry.state.as_ref().is_some_and(&so) && !order.contains(&entry.name) {
                order.push(entry.name);
            }
        }
        order
    }

    /// What the prober asked of the shoot.
    pub fn asked(&self) -> Vec<Asked> {
        self.plane.asked_by(PROBE_USER, &self.mark)
    }

    /// What the prober asked of the seed in this shoot's namespace.
    pub fn asked_of_seed(&self) -> Vec<Asked> {
        let all = self.seed.asked_since(&self.seed_mark);
        all.into_iter()
            .filter(|asked| asked.namespace == self.namespace)
            .collect()
    }

    /// Probes so far: lists of leases that were answered, or where there is no audit log, requests
    /// through the relay.
    pub fn probes(&self) -> usize {
        match self.plane.server() {
            Some(_) => self
                .asked()
                .iter()
                .filter(|asked| asked.resource == "leases" && asked.code == 200)
                .count(),
            None => usize::try_from(self.relay.turns()).unwrap_or(usize::MAX),
        }
    }

    /// Waits for this many complete probes more. One more than that is awaited: the first may have
    /// been under way.
    pub async fn after_probes(&self, count: usize) -> Result<()> {
        let begin = self.probes();
        self.eventually("more probes", async || {
            let now = self.probes();
            ensure!(now > begin + count, "{} of {count}", now - begin);
            Ok(())
        })
        .await
    }

    /// Waits until no connection and no byte has come from the prober for so long.
    pub async fn silent_for(&self, quiet: Duration) -> Result<()> {
        let mut last = (self.relay.connections(), self.relay.bytes());
        let mut since = tokio::time::Instant::now();
        self.eventually("the prober leaves this shoot alone", async || {
            let now = (self.relay.connections(), self.relay.bytes());
            if now != last {
                (last, since) = (now, tokio::time::Instant::now());
            }
            ensure!(
                since.elapsed() >= quiet,
                "{:?} since the last byte",
                since.elapsed()
            );
            Ok(())
        })
        .await
    }

    /// Waits until every lease is older than `age`.
    pub async fn leases_older_than(&self, age: Duration) -> Result<()> {
        self.lease_ages("old leases", |lease| lease > age).await
    }

    /// Waits until every lease is younger than `age`.
    pub async fn leases_younger_than(&self, age: Duration) -> Result<()> {
        self.lease_ages("young leases", |lease| lease < age).await
    }

    async fn lease_ages(&self, what: &str, is_awaited: impl Fn(Duration) -> bool) -> Result<()> {
        self.eventually(what, async || {
            let ages = self.nodes.ages().await?;
            ensure!(
                ages.iter().all(|age| is_awaited(*age)),
                "they are {ages:?} old"
            );
            Ok(())
        })
        .await
    }

    /// Waits until these Deployments are at 0, marked, each with its memory.
    pub async fn held_down(&self, memories: &[(&str, &str)]) -> Result<()> {
        self.all("all held down", memories, |state, memory| {
            state.is_held_down(memory)
        })
        .await
    }

    /// Waits until these Deployments are at so many replicas, with no trace of the prober.
    pub async fn free_at(&self, replicas: &[(&str, i64)]) -> Result<()> {
        self.all("all restored", replicas, |state, replicas| {
            state.is_free_at(*replicas)
        })
        .await
    }

    async fn all<T>(
        &self,
        what: &str,
        wanted: &[(&str, T)],
        is: impl Fn(&Dependent, &T) -> bool,
    ) -> Result<()> {
        self.eventually(what, async || {
            // The history is to tell of it, too.
            for states in [self.dependents().await?, self.states()] {
                for (name, wanted) in wanted {
                    let state = states.get(*name).with_context(|| format!("no {name}"))?;
                    ensure!(is(state, wanted), "{name}: {state}");
                }
            }
            Ok(())
        })
        .await
    }

    /// The writes to replicas, memories and markers since this entry of the history. That pods
    /// follow is none.
    pub fn writes_since(&self, from: usize) -> Vec<Entry> {
        let history = self.history();
        let wanted = |entry: &Entry| {
            entry
                .state
                .clone()
                .map(|state| (state.replicas, state.memory, state.marker))
        };
        let written = |(index, entry): &(usize, &Entry)| {
            let before = history[..*index].iter().rfind(|old| old.name == entry.name);
            before.is_none_or(|before| wanted(before) != wanted(entry))
        };
        history
            .iter()
            .enumerate()
            .skip(from)
            .filter(written)
            .map(|(_, entry)| entry.clone())
            .collect()
    }

    /// Fails if any of the Deployments was written to since this entry of the history.
    pub fn untouched_since(&self, from: usize) -> Result<()> {
        let touched = self.writes_since(from);
        ensure!(
            touched.is_empty(),
            "touched: {}\n{}",
            lines(&touched),
            self.story()
        );
        Ok(())
    }

    /// [`eventually`], with this shoot's story when it fails.
    pub async fn eventually<T>(
        &self,
        what: &str,
        look: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        eventually(what, look).await.with_context(|| self.story())
    }

    /// What happened, for a person who reads why a scenario failed. The prober's whole log is kept
    /// in the folder artefacts.
    pub fn story(&self) -> String {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../artefacts")
            .join(format!("{}.log", self.namespace));
        let kept = match std::fs::create_dir_all(kept.with_file_name(""))
            .and_then(|()| std::fs::copy(self.seed.log(), &kept))
        {
            Ok(_) => kept.display().to_string(),
            Err(error) => format!("not kept: {error}"),
        };
        let history = self.history();
        let asked = self.asked();
        let recent: Vec<String> = asked[asked.len().saturating_sub(8)..]
            .iter()
            .map(|asked| format!("  {} {} {} {}", asked.at, asked.verb, asked.uri, asked.code))
            .collect();
        format!(
            "--- {}\n{} connections, {:?} bytes\nlast requests to the shoot:\n{}\nhistory:\n{}\nthe prober's log about it:\n{}\n\
             the end of the log, kept as {kept}:\n{}",
            self.namespace,
            self.relay.connections(),
            self.relay.bytes(),
            recent.join("\n"),
            lines(&history),
            tail(&self.seed.log(), 25, &self.namespace),
            tail(&self.seed.log(), 5, ""),
        )
    }
}

fn lines(entries: &[Entry]) -> String {
    let begin = entries.first().map(|entry| entry.at);
    let line = |entry: &Entry| {
        let seconds = begin
            .map(|begin| (entry.at - begin).as_secs_f64())
            .unwrap_or_default();
        let state = entry
            .state
            .as_ref()
            .map_or_else(|| "deleted".into(), ToString::to_string);
        format!("  {seconds:7.2} s  {}: {state}", entry.name)
    };
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}
