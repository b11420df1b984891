//! `restore`: what is held down comes back, level by level and as it was. Nothing is written before
//! `--yes` says so.
//!
//! ```text
//! the prober says "up" --.
//! --force, and a pause --'--> by level: each controller with the marker --scale_up--> one patch --> ready
//! ```

mod allowed;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use common::api_failure::ApiFailure;
use common::logging::with_causes;
use futures::future::join_all;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use prober::seed::dependent::{ScalableObject, kind};
use prober::write::{FIELD_MANAGER, merge_patch};
use prober_core::config::{Config, Dependent};
use prober_core::replicas::{DependentState, Observed, PlannedWrite, scale_up};
use prober_core::verdict::Scope;
use tokio::time::{sleep, timeout};

use self::allowed::{check_paused, check_up, held_down};
use crate::ask::{Answer, REQUEST_TIMEOUT, ask, connect, within};
use crate::commands::RestoreArgs;
use crate::config;
use crate::output::{complain, plain, print};

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
    args: RestoreArgs,
}

pub(crate) async fn run(args: RestoreArgs) -> anyhow::Result<()> {
    let client = connect(&args.seed).await?;
    let shoots = match &args.namespace {
        Some(namespace) => vec![namespace.clone()],
        None => held_down(ask(&args.seed).await?.whole.status)?,
    };
    let restore = Restore {
        config: config::find(&client, &args)
            .await
            .context("no config, which --config-file may name")?,
        client,
        args,
    };
    let mut failed = 0;
    for shoots in shoots.chunks(AT_ONCE) {
        // What the prober said before the last ones were restored may be long ago.
        let answer = match restore.args.force {
            true => None,
            false => Some(ask(&restore.args.seed).await?),
        };
        let restored = shoots
            .iter()
            .map(|shoot| restore.shoot(shoot, answer.as_ref()));
        let restored = join_all(restored).await.into_iter();
        failed += restored.filter(|is_restored| !is_restored).count();
    }
    let count = shoots.len();
    ensure!(failed == 0, "{failed} of {count} shoots are not restored");
    if count == 0 {
        say("Nothing is held down.");
    } else if !restore.args.yes {
        say("Nothing is written without --yes.");
    }
    Ok(())
}

impl Restore {
    /// Restores a shoot. Returns true unless it is refused, or not all of it is restored.
    async fn shoot(&self, namespace: &str, answer: Option<&Answer>) -> bool {
        let allowed = match answer {
            Some(answer) => answer.shoot(namespace).and_then(check_up),
            None => check_paused(&self.client, &self.config, namespace).await,
        };
        if let Err(error) = allowed {
            return fails(namespace, &error);
        }
        let level = |dependent: &Dependent| dependent.scale_up.level;
        let mut dependents = self.config.dependents.clone();
        dependents.sort_by_key(level);
        let mut is_restored = true;
        for level in dependents.chunk_by(|one, other| level(one) == level(other)) {
            let level = level.iter().map(|one| self.dependent(namespace, one));
            is_restored &= !join_all(level).await.contains(&false);
        }
        is_restored
    }

    /// Restores a dependent and waits until it is ready. Returns true unless that fails.
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
            Err(error) => return fails(&name, &error),
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
        if self.args.yes && timeout(READY_TIMEOUT, ready).await.is_err() {
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
        let change = plan(objects, name).await?;
        if !self.args.yes || change.is_none() {
            return Ok(change);
        }
        sleep(dependent.scale_up.initial_delay).await;
        for _ in 0..TRIES {
            let Some(change) = plan(objects, name).await? else {
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

/// Says why something is not restored.
fn fails(name: &str, error: &anyhow::Error) -> bool {
    complain(&format!("{name}: {}", with_causes(error.as_ref())));
    false
}

/// Reads a dependent. `None` if it does not exist, or has no replicas.
async fn read(objects: &Api<ScalableObject>, name: &str) -> anyhow::Result<Option<Arc<Observed>>> {
    let object = within(REQUEST_TIMEOUT, objects.get_opt(name)).await?;
    Ok(match object.map(DependentState::from) {
        Some(DependentState::Present(observed)) => Some(observed),
        _ => None,
    })
}

/// Plans what brings a dependent back, as it is now. `None` if it is not held down.
async fn plan(objects: &Api<ScalableObject>, name: &str) -> anyhow::Result<Option<PlannedWrite>> {
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
