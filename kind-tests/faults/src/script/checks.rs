//! What comes of a story.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api_server::Record;
use serde_json::Value;
use testbed::page::{ScrapedMetrics, page};
use testbed::{PATIENCE, eventually_within};
use tokio::time::timeout;

use super::Script;
use crate::story::injected_fault::{number, requests};

/// Within this time all is so that a story waits for.
const SOON: Duration = Duration::from_secs(60);

/// Checks again and again until it is so.
pub(super) async fn soon(what: &str, check: impl AsyncFnMut() -> Result<()>) -> Result<()> {
    eventually_within(what, SOON, check).await
}

impl Script {
    /// How many requests came to the shoot, and to the seed but for the election and rehearsals.
    pub(super) fn requests(&self) -> [u64; 2] {
        let is_other =
            |record: &Record| record.resource.starts_with("leases") || record.is_dry_run();
        let seed = self.seed().requests();
        let others = seed.count(is_other) as u64;
        [self.shoot().api.requests().total(), seed.total() - others]
    }

    /// Waits until so many more probes were answered well.
    pub(super) async fn probes(&self, count: u64) -> Result<()> {
        let all = self.shoot().api.requests();
        let (before, is_one) = (all.total(), requests("200 leases"));
        let enough = |all: &VecDeque<Record>| {
            let new = all.iter().filter(|record| record.number >= before);
            let answered = new.filter(|record| is_one(record)).count() as u64;
            (answered >= count).then_some(())
        };
        timeout(PATIENCE, all.wait_for(enough)).await?;
        Ok(())
    }

    pub(super) async fn owner_asked(&self, count: usize) -> Result<()> {
        let mut owner = self.life.world.owner.subscribe();
        let (_, before) = *owner.borrow();
        let more = owner.wait_for(|(_, asked)| *asked >= before + count);
        timeout(PATIENCE, more).await?.map(drop)?;
        Ok(())
    }

    /// Waits until a dependent is so: held down, up as its owner wants it, or untouched at a number.
    pub(super) async fn until(&self, name: &str, state: &str) -> Result<()> {
        soon(state, async || {
            let record = self.shoot().record();
            let is = record.dependents.get(name).context("it is gone")?;
            let (wanted, untouched) = (record.wanted[name], !is.marker && is.memory.is_none());
            let so = match state {
                "held" => is.replicas == 0 && is.marker && is.remembered() == Some(wanted),
                "up" => is.replicas == wanted && untouched,
                "ignored" => is.replicas == wanted && is.ignored,
                replicas => is.replicas == number::<i64>(replicas)? && untouched,
            };
            ensure!(so, "{name} is {is:?}, wanted {wanted}");
            Ok(())
        })
        .await
    }

    /// The names of the dependents that writes were asked for, in the order of their arrival.
    pub(super) fn written(&self) -> Vec<String> {
        self.names_of(scales)
    }

    /// The names in requests to the seed that are so.
    pub(super) fn names_of(&self, so: impl Fn(&Record) -> bool) -> Vec<String> {
        let mut all = self.seed().requests().all();
        all.retain(so);
        all.into_iter().map(|record| record.name).collect()
    }

    pub(super) fn has(&self, place: &str) -> bool {
        let (namespace, name) = place.split_once('/').expect("a name");
        self.seed().store().get("pods", namespace, name).is_some()
    }

    pub(super) fn search(&self, what: &str, text: &str) {
        self.life.world.credentials.search(what, text.as_bytes());
    }

    /// A page of the agent that was started last.
    pub(super) async fn served(&self, path: &str) -> Result<(u16, String)> {
        let served = page(&self.life.log, path).await?;
        self.search(path, &served.1);
        Ok(served)
    }

    pub(super) async fn page(&self, path: &str, status: u16, text: &str) -> Result<()> {
        soon(path, async || {
            let (found, body) = self.served(path).await?;
            ensure!(found == status && body.contains(text), "{found} {body}");
            Ok(())
        })
        .await
    }

    /// `POINTER JSON` in the status, where `*` is anything that is there.
    pub(super) async fn status(&self, text: &str) -> Result<()> {
        let (pointer, expected) = text.split_once(' ').context("no value in it")?;
        soon(text, async || {
            let status: Value = serde_json::from_str(&self.served("/statusz.json").await?.1)?;
            let found = status.pointer(pointer).unwrap_or(&Value::Null);
            let is_so = match expected {
                "*" => !found.is_null(),
                json => *found == serde_json::from_str::<Value>(json)?,
            };
            ensure!(is_so, "{found} in {status}");
            Ok(())
        })
        .await
    }

    pub async fn metrics(&self) -> Result<ScrapedMetrics> {
        ScrapedMetrics::read(&self.served("/metrics").await?.1)
    }

    /// `SERIES VALUE`; of a series its beginning is enough.
    pub(super) async fn metric(&self, text: &str) -> Result<()> {
        let (series, value) = text.rsplit_once(' ').context("no value in it")?;
        soon(text, async || {
            let values = self.metrics().await?.values;
            let found = values
                .into_iter()
                .find(|(name, _)| name.starts_with(series));
            let found = found.map(|(_, found)| found);
            ensure!(found == value.parse().ok(), "{found:?}");
            Ok(())
        })
        .await
    }

    /// An Event with this text in its message, or in its JSON.
    pub(super) async fn event(&self, reason: &str, text: &str) -> Result<()> {
        soon(text, async || {
            let mut events = self.seed().store().list("events", None);
            events.retain(|event| event["reason"] == reason);
            let says = |event: &Value| {
                let message = event["message"].as_str().unwrap_or_default();
                message.contains(text) || event.to_string().contains(text)
            };
            ensure!(events.iter().any(says), "{events:#?}");
            Ok(())
        })
        .await
    }
}

/// Whether a request is a write to a dependent.
pub fn scales(record: &Record) -> bool {
    requests("write deployments.|stores.")(record)
}
