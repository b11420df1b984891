//! `restore`: what is held down comes back, in order and as it was. Nothing is written before
//! `--yes` says so.

mod answer;
mod plan;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use common::leader_election::Role;
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use prober::restore::{Limits, ManualRestore, only_held_down};
use prober::seed::ClusterState;
use prober::seed::watch_scope::WatchScope;
use prober::shared::Shared;
use prober_core::options::PAUSE;
use prober_core::owner::Ownership;
use prober_core::verdict::Scope;
use serde_json::json;
use tokio::time::{sleep, timeout};

use self::answer::{Answer, Shoot};
use self::plan::Step;
use crate::commands::Format;
use crate::output::{Progress, print, with_causes};
use crate::probe::FAILURES;
use crate::seed::Seed;
use crate::{commands, output, seed, why};

/// So many shoots are restored side by side: one whose API server does not answer takes all of its
/// time-outs.
const AT_ONCE: usize = 16;
/// How long it may take until the watch of the namespaces shows the pause. The prober has the same
/// watch.
const PAUSE_SEEN: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What all shoots of one call have in common.
struct Job {
    args: commands::Restore,
    seed: Seed,
    /// What all restores share, so that it bounds their writes together.
    shared: Shared,
    limits: Limits,
}

pub(crate) async fn run(args: commands::Restore) -> anyhow::Result<()> {
    let seed = seed::read(
        &args.access,
        args.namespace
            .clone()
            .map_or(WatchScope::Seed, WatchScope::Shoot),
    )
    .await?;
    let namespaces = match &args.namespace {
        Some(namespace) => seed.cluster(namespace).map(|_| vec![namespace.clone()])?,
        None => seed.prober.held_down().into_iter().collect(),
    };
    let unread = if args.all {
        seed.prober.unread()
    } else {
        Vec::new()
    };
    for resource in &unread {
        anstream::eprintln!(
            "warning: {resource} could not be read in any shoot: may it be listed and watched?"
        );
    }
    let limits = Limits {
        timeout: args.timeout,
        failed_probes: FAILURES,
    };
    let job = Job {
        shared: seed.prober.shared(Role::Alone),
        args,
        seed,
        limits,
    };
    job.say(&format!("Config: {}\n", job.seed.config_from));
    if namespaces.is_empty() {
        job.say("Nothing is held down.\n");
    }
    let count = namespaces.len();
    let shoots = job.shoots(namespaces).await;
    let Job { args, seed, .. } = job;
    seed.prober.end().await;
    let broken = count
        - shoots
            .iter()
            .filter(|shoot| shoot.problem.is_none())
            .count();
    let problem = shoots.first().and_then(|shoot| shoot.problem.clone());
    let (format, not) = (
        args.access.output,
        if args.yes {
            "not restored"
        } else {
            "not to be restored"
        },
    );
    if format != Format::Table {
        output::write(
            &Answer {
                shoots,
                config_from: seed.config_from,
            },
            format,
            String::new,
        )?;
    }
    match (args.namespace, problem) {
        (Some(namespace), Some(problem)) => anyhow::bail!("{namespace} is {not}: {problem}"),
        _ => anyhow::ensure!(broken == 0, "{broken} of {count} shoots are {not}"),
    }
    anyhow::ensure!(unread.is_empty(), "what is held down is not known in full");
    Ok(())
}

impl Job {
    /// Restores shoots side by side; those that came to an end, by their names. None stops another,
    /// not even by a panic.
    async fn shoots(&self, namespaces: Vec<String>) -> Vec<Shoot> {
        let restores = namespaces
            .into_iter()
            .map(|namespace| AssertUnwindSafe(self.shoot(namespace)).catch_unwind());
        let ended: Vec<_> = stream::iter(restores)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut shoots: Vec<Shoot> = ended.into_iter().flatten().collect();
        shoots.sort_by(|a, b| a.namespace.cmp(&b.namespace));
        shoots
    }

    async fn shoot(&self, namespace: String) -> Shoot {
        let mut shoot = Shoot {
            namespace,
            state: "no_cluster",
            ..Shoot::default()
        };
        match self.seed.prober.cluster(&shoot.namespace) {
            Some(cluster) => self.restore(&mut shoot, &cluster).await,
            None => {
                shoot.problem = Some(
                    "there is no Cluster of this name, so that it is not known to be a shoot"
                        .to_owned(),
                )
            }
        }
        if let (true, Some(problem)) = (self.args.all, &shoot.problem) {
            anstream::eprintln!("error: {}: {problem}", shoot.namespace);
        }
        shoot
    }

    async fn restore(&self, shoot: &mut Shoot, cluster: &Arc<ClusterState>) {
        let (state, because) = why::state(cluster);
        shoot.state = state;
        shoot.paused = self.seed.prober.paused(&shoot.namespace);
        shoot.steps = self.plan(&shoot.namespace, Scope::All);
        let (shared, cluster) = (self.shared.clone(), Arc::clone(cluster));
        let mut restore = ManualRestore::new(shared, &shoot.namespace, cluster, self.args.force);
        if shoot.is_pending() {
            let refused = self.look(shoot, &mut restore, &because).await;
            shoot.steps = self.plan(&shoot.namespace, restore.scope());
            shoot.problem = refused.filter(|_| shoot.is_pending());
        }
        self.say(&shoot.text(&because, self.args.yes, self.args.force));
        if self.args.yes
            && shoot.problem.is_none()
            && shoot.is_pending()
            && let Err(error) = self.carry_out(shoot, &mut restore).await
        {
            shoot.problem = Some(with_causes(error.as_ref()));
        }
        if let (None, Some(step)) = (&shoot.problem, shoot.steps.iter().find(|step| step.unknown)) {
            shoot.problem = Some(format!(
                "{} could not be read: it may be held down or not",
                step.resource
            ));
        }
    }

    fn plan(&self, namespace: &str, scope: Scope) -> Vec<Step> {
        let observed: Vec<_> = self
            .seed
            .prober
            .dependents(namespace)
            .into_iter()
            .map(|(_, observed)| observed)
            .collect();
        let only_held_down = only_held_down(self.seed.prober.options(namespace));
        plan::plan(
            &self.seed.config.dependents,
            &observed,
            scope,
            only_held_down,
        )
    }

    /// Why the shoot is not to be restored, if so. Not knowing is no reason to bring anything back.
    async fn look(
        &self,
        shoot: &mut Shoot,
        restore: &mut ManualRestore,
        because: &str,
    ) -> Option<String> {
        let probed = shoot.state == "probed";
        if !probed && (self.args.all || !self.args.force) {
            return Some(format!(
                "{because}; it comes back only when it is named, with --force"
            ));
        }
        if self.args.force {
            return None;
        }
        if let Some(owner) = self
            .seed
            .prober
            .owner(&shoot.namespace)
            .await
            .filter(|owner| owner.standing != Ownership::Ours)
        {
            return Some(format!(
                "it is not known to be ours: {}; --force restores it all the same",
                owner.sentence()
            ));
        }
        let progress = if self.args.all {
            Progress::default()
        } else {
            Progress::saying("looking at the shoot ...")
        };
        let found = restore.probe(self.limits).await;
        drop(progress);
        match found {
            Ok(verdict) => {
                let word = verdict.into_str();
                shoot.verdict = Some(word);
                (!verdict.is_up()).then(|| {
                    format!(
                        "{word}: {}; --force restores it all the same",
                        why::verdict(word)
                    )
                })
            }
            Err(failure) => Some(format!(
                "its leases could not be looked at ({failure}); --force restores it all the same"
            )),
        }
    }

    async fn carry_out(
        &self,
        shoot: &mut Shoot,
        restore: &mut ManualRestore,
    ) -> anyhow::Result<()> {
        if self.args.force {
            self.pause(shoot).await?;
        }
        restore.begin();
        let mut failed = Vec::new();
        while let Some(event) = restore.next(self.limits).await? {
            let line = shoot.note(event, &mut failed);
            self.say(&format!("{}: {line}\n", shoot.namespace));
        }
        let left = restore
            .remaining()
            .into_iter()
            .filter(|resource| !failed.iter().any(|(other, _)| other == *resource));
        let left = left.map(|resource| format!("{resource} was not restored"));
        let problems: Vec<_> = failed
            .iter()
            .map(|(resource, why)| format!("{resource} {why}"))
            .chain(left)
            .collect();
        anyhow::ensure!(problems.is_empty(), "{}", problems.join("; "));
        shoot.restored = true;
        self.say(&format!("{}: restored\n", shoot.namespace));
        Ok(())
    }

    /// Keeps the prober from writing for this shoot, until its operators take the annotation away.
    async fn pause(&self, shoot: &mut Shoot) -> anyhow::Result<()> {
        let (namespaces, name) = (
            Api::<Namespace>::all(self.seed.client.clone()),
            shoot.namespace.clone(),
        );
        // A pause that nobody can see to be in force would only keep the prober from restoring.
        anyhow::ensure!(
            self.seed.prober.paused(&name).is_some(),
            "the namespaces cannot be watched, so it is not paused"
        );
        let own = namespaces
            .get(&name)
            .await
            .context("its namespace cannot be read, and so not be paused")?;
        if own
            .annotations()
            .get(PAUSE)
            .is_none_or(|value| value != "true")
        {
            let patch = json!({ "metadata": { "annotations": { PAUSE: "true" } } });
            let patched = namespaces
                .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
                .await;
            patched.context("its namespace cannot be annotated, and so not be paused")?;
        }
        let command = format!("kubectl annotate namespace {name} {PAUSE}-");
        anstream::eprintln!(
            "note: {name} is paused: the prober writes nothing for it until you say\n  {command}"
        );
        shoot.unpause = Some(command);
        let seen = async {
            while self.seed.prober.paused(&name) != Some(true) {
                sleep(POLL_INTERVAL).await;
            }
        };
        timeout(PAUSE_SEEN, seen)
            .await
            .context("its pause does not show in the watch of the namespaces")
    }

    /// Says it at once where people read it.
    fn say(&self, text: &str) {
        if self.args.access.output == Format::Table {
            // Whoever does not listen any more keeps no shoot from being restored.
            let _ = print(text.as_bytes());
        }
    }
}
