//! `restore`: what is held down comes back, level by level and as it was. Nothing is written before
//! `--yes` says so.
//!
//! ```text
//! the prober says "up" --.
//! --force, and a pause --'--> by level: each controller with the marker --scale_up--> one patch --> ready
//! ```

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use common::api_failure::ApiFailure;
use futures::future::join_all;
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use prober::seed::dependent::{ScalableObject, kind};
use prober::write::{FIELD_MANAGER, merge_patch};
use prober::{Condition, ShootView, Standing, describe_verdict};
use prober_core::config::{Config, Dependent};
use prober_core::options::{GARDEN, Overrides, PAUSE, ResolvedOptions};
use prober_core::replicas::{DependentState, Observed, PlannedWrite, scale_up};
use prober_core::verdict::Scope;
use tokio::time::{sleep, timeout};

use crate::ask::{REQUEST_TIMEOUT, ask, connect, within};
use crate::commands::{RestoreArgs, SeedArgs};
use crate::config;
use crate::output::{plain, print, with_causes};

/// So many shoots are restored side by side: one whose controllers do not become ready takes all of
/// their delays.
const AT_ONCE: usize = 16;
/// Number of reads after which somebody else writes too often.
const TRIES: usize = 5;
/// Time for a controller to be ready before the next level.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

struct Restore {
    client: Client,
    config: Config,
    /// True if it is written.
    yes: bool,
}

pub(crate) async fn run(args: RestoreArgs) -> anyhow::Result<()> {
    let client = connect(&args.seed).await?;
    let shoots = match &args.namespace {
        Some(namespace) if args.force => vec![(namespace.clone(), None)],
        namespace => shoots(&args.seed, namespace.as_deref()).await?,
    };
    let restore = Restore {
        config: config::find(&client, &args)
            .await
            .context("no config, which --config-file may name")?,
        client,
        yes: args.yes,
    };
    if args.force {
        for (namespace, _) in &shoots {
            restore.check_paused(namespace).await?;
        }
    }
    let count = shoots.len();
    let restored = stream::iter(shoots)
        .map(|(namespace, refused)| restore.shoot(namespace, refused))
        .buffer_unordered(AT_ONCE);
    let failed = restored
        .filter(|restored| std::future::ready(!restored))
        .count()
        .await;
    ensure!(failed == 0, "{failed} of {count} shoots are not restored");
    if count == 0 {
        say("Nothing is held down.");
    } else if !args.yes {
        say("Nothing is written; --yes does it.");
    }
    Ok(())
}

/// The shoot of this name, or all in which something is held down, or may be, by what the prober
/// says. Each with the reason why it is not to be restored.
async fn shoots(
    args: &SeedArgs,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<(String, Option<String>)>> {
    let answer = ask(args).await?;
    let named = |shoot: &ShootView| (shoot.namespace.clone(), refusal(shoot));
    if let Some(namespace) = namespace {
        return Ok(vec![named(answer.shoot(namespace)?)]);
    }
    let status = answer.whole.status;
    if let Some(unknown) = status.unknown {
        bail!("the prober does not know the seed's {unknown} at present");
    }
    let is_held = |shoot: &&ShootView| {
        let conditions = [Condition::HeldDown, Condition::Unknown];
        conditions
            .iter()
            .any(|condition| !shoot.names(*condition).is_empty())
    };
    Ok(status.shoots.iter().filter(is_held).map(named).collect())
}

/// Reason why the prober does not let a shoot be restored. Not knowing is no reason to bring
/// anything back.
fn refusal(shoot: &ShootView) -> Option<String> {
    if let Some(owner) = &shoot.owner
        && owner.standing != Standing::Ours
    {
        return Some(format!("it is not known to be ours: {}", owner.sentence()));
    }
    let Some(probe) = &shoot.probe else {
        return Some(format!(
            "the prober does not probe it: {}",
            shoot.describe_state()
        ));
    };
    match (&probe.failure, probe.verdict()) {
        _ if probe.overdue => Some("the prober's probe of it is overdue".to_owned()),
        (Some(failure), _) => Some(format!("the prober cannot probe it ({})", failure.message)),
        (None, None) => Some("the prober has not probed it yet".to_owned()),
        (None, Some(verdict)) => (!verdict.is_up()).then(|| describe_verdict(verdict)),
    }
}

impl Restore {
    /// Fails unless a pause keeps the prober from scaling down again what comes back.
    async fn check_paused(&self, namespace: &str) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let overrides = async |name: &str| {
            let read = within(REQUEST_TIMEOUT, namespaces.get_opt(name)).await;
            let read = read.with_context(|| format!("the namespace {name} cannot be read"))?;
            anyhow::Ok(read.map(|read| Overrides::of(read.annotations())))
        };
        let (garden, own) = (overrides(GARDEN).await?, overrides(namespace).await?);
        let options = ResolvedOptions::resolve(&self.config, garden.as_ref(), own.as_ref());
        ensure!(
            options.pause.value,
            "{namespace} is not paused, so that the prober would scale down again what comes back. First:\n  \
             kubectl annotate --overwrite namespace {namespace} {PAUSE}=true"
        );
        Ok(())
    }

    /// Restores a shoot; false if it is refused, or not all of it is restored.
    async fn shoot(&self, namespace: String, refused: Option<String>) -> bool {
        if let Some(reason) = refused {
            complain(&format!(
                "{namespace}: {reason}; --force restores it all the same, while it is paused"
            ));
            return false;
        }
        let level = |dependent: &Dependent| dependent.scale_up.level;
        let mut dependents = self.config.dependents.clone();
        dependents.sort_by_key(level);
        let mut is_restored = true;
        for level in dependents.chunk_by(|one, other| level(one) == level(other)) {
            let level = level
                .iter()
                .map(|dependent| self.dependent(&namespace, dependent));
            is_restored &= join_all(level).await.into_iter().all(|restored| restored);
        }
        is_restored
    }

    /// Restores a dependent and waits until it is ready; false if it cannot be restored.
    async fn dependent(&self, namespace: &str, dependent: &Dependent) -> bool {
        let resource = &dependent.resource;
        let objects = Api::namespaced_with(self.client.clone(), namespace, &kind(resource));
        let name = format!("{namespace}: {resource}");
        let change = match self.scale_up(&objects, dependent).await {
            Ok(Some(change)) => change,
            Ok(None) => {
                say(&format!("{name} is not held down"));
                return true;
            }
            Err(error) => {
                complain(&format!("{name}: {}", with_causes(error.as_ref())));
                return false;
            }
        };
        let (before, after) = (change.base.replicas, change.replicas());
        let note = match change.write.used_default_replicas {
            true => ", since what is remembered cannot be used",
            false if before == after => ", without the marker",
            false => "",
        };
        say(&format!("{name}: {before} -> {after}{note}"));
        let ready = async {
            while !is_ready(&objects, &resource.name, after).await {
                sleep(POLL_INTERVAL).await;
            }
        };
        if self.yes && timeout(READY_TIMEOUT, ready).await.is_err() {
            say(&format!("{name} is not ready yet"));
        }
        true
    }

    /// Writes what brings a dependent back, after its delay. `None` if it is not held down.
    async fn scale_up(
        &self,
        objects: &Api<ScalableObject>,
        dependent: &Dependent,
    ) -> anyhow::Result<Option<PlannedWrite>> {
        let name = &dependent.resource.name;
        let change = decide(objects, name).await?;
        if !self.yes || change.is_none() {
            return Ok(change);
        }
        sleep(dependent.scale_up.initial_delay).await;
        for _ in 0..TRIES {
            let Some(change) = decide(objects, name).await? else {
                return Ok(None);
            };
            let params = PatchParams::apply(FIELD_MANAGER);
            let patch = Patch::Merge(merge_patch(&change));
            match within(REQUEST_TIMEOUT, objects.patch(name, &params, &patch)).await {
                Err(error) if is_conflict(&error) => {}
                written => return written.map(|_| Some(change)),
            }
        }
        bail!("somebody else keeps writing it")
    }
}

/// Reads a dependent. `None` if it does not exist, or has no replicas.
async fn read(objects: &Api<ScalableObject>, name: &str) -> anyhow::Result<Option<Arc<Observed>>> {
    let object = within(REQUEST_TIMEOUT, objects.get_opt(name)).await?;
    Ok(match object.map(DependentState::from) {
        Some(DependentState::Present(observed)) => Some(observed),
        _ => None,
    })
}

/// Decides what brings a dependent back, as it is now. `None` if it is not held down.
async fn decide(objects: &Api<ScalableObject>, name: &str) -> anyhow::Result<Option<PlannedWrite>> {
    let base = read(objects, name).await?;
    Ok(base.and_then(|base| {
        let write = scale_up(&base, Scope::HeldDown, true)?;
        Some(PlannedWrite { base, write })
    }))
}

async fn is_ready(objects: &Api<ScalableObject>, name: &str, replicas: i32) -> bool {
    matches!(read(objects, name).await, Ok(Some(now)) if now.ready >= replicas)
}

fn is_conflict(error: &anyhow::Error) -> bool {
    let failure = error.downcast_ref::<kube::Error>().map(ApiFailure::from);
    failure == Some(ApiFailure::Conflict)
}

/// Writes a line at once. Whoever does not listen any more keeps no shoot from being restored.
fn say(line: &str) {
    let _ = print(&(plain(line) + "\n"));
}

fn complain(line: &str) {
    eprintln!("error: {}", plain(line));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_a_verdict_of_up_that_is_fresh_and_ours_lets_a_shoot_be_restored() {
        let nobody = Value::Null;
        let elsewhere = json!({ "standing": "elsewhere" });
        for (owner, overdue, verdict, expected) in [
            (&nobody, false, "scale_up", None),
            (&nobody, false, "scale_up_held_down", None),
            (&nobody, false, "hold_undecided", Some("hold_undecided: ")),
            (
                &nobody,
                true,
                "scale_up",
                Some("the prober's probe of it is overdue"),
            ),
            (&nobody, false, "", Some("the prober has not probed it yet")),
            (
                &elsewhere,
                false,
                "scale_up",
                Some("it is not known to be ours: "),
            ),
        ] {
            let found = json!({ "secondsAgo": 1, "verdict": verdict, "candidates": 5, "expired": 0, "undecided": 0, "skewed": 0,
                                "fraction": 0.6, "expiredAfterSeconds": 15.0, "unknownAfterSeconds": 40.0, "excluded": {} });
            let found = Some(found).filter(|_| !verdict.is_empty());
            let probe = json!({ "nextProbeInSeconds": 1, "overdue": overdue, "found": found });
            let shoot = json!({ "namespace": "shoot--a--b", "state": "probed", "settings": [], "dependents": [],
                                "owner": owner, "probe": probe });
            let refused = refusal(&serde_json::from_value(shoot).expect("a shoot"));
            let begin = refused
                .as_deref()
                .zip(expected)
                .map(|(refused, begin)| refused.starts_with(begin));
            assert!(
                begin.unwrap_or(refused.is_none() && expected.is_none()),
                "{expected:?}: {refused:?}"
            );
        }
    }
}
