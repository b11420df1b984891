//! `restore`: what is held down comes back, in order and as it was. Nothing is written before
//! `--yes` says so.

mod answer;
mod plan;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use common::leader_election::Role;
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use prober::restore::{Limits, ManualRestore, only_held_down};
use prober::shared::Shared;
use prober::{Ownership, ShootState, WatchScope, describe_verdict};
use prober_core::options::{PAUSE, Source};
use prober_core::verdict::Scope;
use serde_json::json;
use tokio::time::{sleep, timeout};

use self::answer::{RestoreAnswer, ShootRestore};
use self::plan::PlannedStep;
use crate::commands::{Format, RestoreArgs};
use crate::output::{self, Progress, print, with_causes};
use crate::probe::FAILURES;
use crate::seed::SeedReader;

/// So many shoots are restored side by side: one whose API server does not answer takes all of its
/// time-outs.
const AT_ONCE: usize = 16;
/// How long it may take until the watch of the namespaces shows the pause. The prober has the same
/// watch.
const PAUSE_SEEN: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What all shoots of one call have in common.
struct Job {
    args: RestoreArgs,
    seed: SeedReader,
    /// What all restores share, so that it bounds their writes together.
    shared: Shared,
    limits: Limits,
}

pub(crate) async fn run(args: RestoreArgs) -> anyhow::Result<()> {
    let scope = args
        .namespace
        .clone()
        .map_or(WatchScope::Seed, WatchScope::Shoot);
    let seed = SeedReader::open(&args.seed, scope).await?;
    let (namespaces, unread) = match &args.namespace {
        Some(namespace) => {
            seed.cluster(namespace)?;
            (vec![namespace.clone()], Vec::new())
        }
        None => (
            seed.prober.held_down().into_iter().collect(),
            seed.prober.unread(),
        ),
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
    let answer = RestoreAnswer {
        shoots,
        config_from: seed.config_from,
    };
    // As a table it is printed already.
    output::write(&answer, args.seed.output, String::new)?;
    let problems = answer.shoots.iter().map(|shoot| shoot.problem.as_ref());
    let broken = count - problems.clone().filter(Option::is_none).count();
    let not = if args.yes {
        "not restored"
    } else {
        "not to be restored"
    };
    if let (Some(namespace), Some(problem)) = (args.namespace, problems.flatten().next()) {
        bail!("{namespace} is {not}: {problem}");
    }
    ensure!(broken == 0, "{broken} of {count} shoots are {not}");
    ensure!(unread.is_empty(), "what is held down is not known in full");
    Ok(())
}

impl Job {
    /// Restores shoots side by side; those that came to an end, by their names. None stops another,
    /// not even by a panic.
    async fn shoots(&self, namespaces: Vec<String>) -> Vec<ShootRestore> {
        let restores = namespaces
            .into_iter()
            .map(|namespace| AssertUnwindSafe(self.shoot(namespace)).catch_unwind());
        let restores = stream::iter(restores).buffer_unordered(AT_ONCE);
        let ended: Vec<_> = restores.collect().await;
        let mut shoots: Vec<ShootRestore> = ended.into_iter().flatten().collect();
        shoots.sort_by(|a, b| a.namespace.cmp(&b.namespace));
        shoots
    }

    async fn shoot(&self, namespace: String) -> ShootRestore {
        let mut shoot = ShootRestore {
            namespace,
            state: "no_cluster",
            ..ShootRestore::default()
        };
        if let Err(problem) = self.restore(&mut shoot).await {
            let problem = with_causes(problem.as_ref());
            if self.args.all {
                anstream::eprintln!("error: {}: {problem}", shoot.namespace);
            }
            shoot.problem = Some(problem);
        }
        shoot
    }

    async fn restore(&self, shoot: &mut ShootRestore) -> anyhow::Result<()> {
        let (prober, force) = (&self.seed.prober, self.args.force);
        let cluster = prober
            .cluster(&shoot.namespace)
            .context("there is no Cluster of this name, so that it is not known to be a shoot")?;
        let state = ShootState::from(&*cluster);
        shoot.state = (&state).into();
        shoot.paused = prober.paused(&shoot.namespace);
        shoot.steps = self.plan(&shoot.namespace, Scope::All);
        let mut restore = ManualRestore::new(self.shared.clone(), &shoot.namespace, cluster, force);
        let mut refused = None;
        if shoot.is_pending() {
            let allowed = self.check_allowed(shoot, &state, &mut restore).await;
            shoot.steps = self.plan(&shoot.namespace, restore.scope());
            refused = allowed.err().filter(|_| shoot.is_pending());
        }
        self.say(&shoot.text(&state, &self.args, refused.is_some()));
        if let Some(problem) = refused {
            return Err(problem);
        }
        if self.args.yes && shoot.is_pending() {
            self.carry_out(shoot, &mut restore).await?;
        }
        let unknown = shoot.steps.iter().find(|step| step.unknown);
        if let Some(PlannedStep { resource, .. }) = unknown {
            bail!("{resource} could not be read: it may be held down or not");
        }
        Ok(())
    }

    fn plan(&self, namespace: &str, scope: Scope) -> Vec<PlannedStep> {
        let prober = &self.seed.prober;
        let only_held_down = only_held_down(prober.options(namespace));
        plan::plan(prober.dependents(namespace), scope, only_held_down)
    }

    /// Fails with why the shoot is not to be restored. Not knowing is no reason to bring anything
    /// back.
    async fn check_allowed(
        &self,
        shoot: &mut ShootRestore,
        state: &ShootState,
        restore: &mut ManualRestore,
    ) -> anyhow::Result<()> {
        let RestoreArgs { all, force, .. } = self.args;
        if *state != ShootState::Probed {
            let because = state.meaning();
            ensure!(
                force && !all,
                "{because}; it comes back only when it is named, with --force"
            );
        }
        if force {
            return Ok(());
        }
        if let Some(owner) = self.seed.prober.owner(&shoot.namespace).await {
            let sentence = owner.sentence();
            ensure!(
                owner.standing == Ownership::Ours,
                "it is not known to be ours: {sentence}; --force restores it all the same"
            );
        }
        let progress = (!all).then(|| Progress::start("probing the shoot ..."));
        let found = restore.probe(self.limits).await;
        drop(progress);
        match found {
            Ok(verdict) => {
                shoot.verdict = Some(verdict);
                let said = describe_verdict(verdict);
                ensure!(verdict.is_up(), "{said}; --force restores it all the same");
                Ok(())
            }
            Err(failure) => {
                bail!("it could not be probed ({failure}); --force restores it all the same")
            }
        }
    }

    async fn carry_out(
        &self,
        shoot: &mut ShootRestore,
        restore: &mut ManualRestore,
    ) -> anyhow::Result<()> {
        if self.args.force {
            self.pause(shoot).await?;
        }
        restore.begin();
        while let Some(event) = restore.next(self.limits).await? {
            let line = shoot.note(event);
            self.say(&format!("{}: {line}\n", shoot.namespace));
        }
        let problems = shoot.unrestored(&restore.remaining());
        ensure!(problems.is_empty(), "{}", problems.join("; "));
        shoot.restored = true;
        self.say(&format!("{}: restored\n", shoot.namespace));
        Ok(())
    }

    /// Keeps the prober from writing for this shoot, until its operators remove the annotation.
    async fn pause(&self, shoot: &mut ShootRestore) -> anyhow::Result<()> {
        let (prober, name) = (&self.seed.prober, &shoot.namespace);
        // A pause that nobody can see to be in force would only keep the prober from restoring.
        let options = prober
            .options(name)
            .context("the namespaces cannot be watched, so it is not paused")?;
        // Who may not annotate it has it annotated before.
        if !(options.pause.value && options.pause.from == Source::Namespace) {
            let namespaces: Api<Namespace> = Api::all(self.seed.client.clone());
            let patch = json!({ "metadata": { "annotations": { PAUSE: "true" } } });
            namespaces
                .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
                .await
                .context("its namespace cannot be annotated, and so not be paused")?;
        }
        let command = format!("kubectl annotate namespace {name} {PAUSE}-");
        anstream::eprintln!(
            "note: {name} is paused: the prober writes nothing for it until you say\n  {command}"
        );
        shoot.unpause = Some(command);
        let seen = async {
            while prober.paused(&shoot.namespace) != Some(true) {
                sleep(POLL_INTERVAL).await;
            }
        };
        timeout(PAUSE_SEEN, seen)
            .await
            .context("its pause does not show in the watch of the namespaces")
    }

    /// Prints it at once where people read it.
    fn say(&self, text: &str) {
        if self.args.seed.output == Format::Table {
            // Whoever does not listen any more keeps no shoot from being restored.
            let _ = print(text);
        }
    }
}
