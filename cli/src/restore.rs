//! `restore`: what is held down comes back, in order and as it was. Nothing is written before
//! `--yes` says so.

mod answer;
mod plan;
mod verdict;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use prober::ShootEntry;
use prober::restore::ManualRestore;
use prober::seed::ClusterState;
use prober::seed_reader::SeedReader;
use prober::shared::Shared;
use prober_core::options::{PAUSE, Source};
use serde_json::json;
use tokio::time::{sleep, timeout};

use self::answer::{RestoreAnswer, ShootRestore};
use self::plan::PlannedStep;
use self::verdict::Verdicts;
use crate::commands::{Format, RestoreArgs};
use crate::output::{self, plain, print, with_causes};
use crate::seed::{SeedObjects, connect, unknown};

/// So many shoots are restored side by side: one whose controllers do not become ready takes all of
/// their timeouts.
const AT_ONCE: usize = 16;
/// Time until the watch of the namespaces shows the pause. The prober has the same watch.
const PAUSE_SEEN: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Common to all shoots of one call.
struct Job {
    args: RestoreArgs,
    client: Client,
    reader: SeedReader,
    /// Bounds the writes of all restores together.
    shared: Shared,
    /// `None` if nobody is asked, as `--force` says.
    verdicts: Option<Verdicts>,
}

pub(crate) async fn run(args: RestoreArgs) -> anyhow::Result<()> {
    let client = connect(&args.seed).await?;
    let shoot = args.namespace.as_deref();
    let SeedObjects {
        reader,
        config_from,
    } = SeedObjects::read(client.clone(), &args.seed, shoot).await?;
    let (namespaces, unread) = match &args.namespace {
        Some(namespace) => {
            reader
                .cluster(namespace)
                .with_context(|| unknown(namespace))?;
            (vec![namespace.clone()], Vec::new())
        }
        None => (reader.held_down().into_iter().collect(), reader.unread()),
    };
    for resource in &unread {
        eprintln!(
            "warning: {resource} could not be read in any shoot: may it be listed and watched?"
        );
    }
    let verdicts = match args.force {
        true => None,
        false => Some(Verdicts::ask(client.clone(), &args.seed).await),
    };
    let job = Job {
        shared: reader.shared(),
        args,
        client,
        reader,
        verdicts,
    };
    job.say(&format!("Config: {config_from}\n"));
    if namespaces.is_empty() {
        job.say("Nothing is held down.\n");
    }
    let count = namespaces.len();
    let shoots = match &job.verdicts {
        Some(verdicts) => verdicts.beside(job.shoots(namespaces)).await,
        None => job.shoots(namespaces).await,
    };
    let Job { args, reader, .. } = job;
    reader.end().await;
    let answer = RestoreAnswer {
        shoots,
        config_from,
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
    /// Restores shoots side by side; returns those that came to an end, by their names. None stops
    /// another, not even by a panic.
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
            state: "no_cluster".into(),
            ..ShootRestore::default()
        };
        if let Err(problem) = self.restore(&mut shoot).await {
            let problem = with_causes(problem.as_ref());
            if self.args.all {
                eprintln!("error: {}: {problem}", shoot.namespace);
            }
            shoot.problem = Some(problem);
        }
        shoot
    }

    async fn restore(&self, shoot: &mut ShootRestore) -> anyhow::Result<()> {
        let cluster = self
            .reader
            .cluster(&shoot.namespace)
            .context("there is no Cluster of this name, so that it is not known to be a shoot")?;
        let seen = self.reader.shoot(shoot.namespace.clone(), &cluster);
        shoot.state = seen.state.clone();
        shoot.paused = seen.paused;
        shoot.steps = plan::plan(self.reader.dependents(&shoot.namespace));
        let mut refused = None;
        if shoot.is_pending() {
            refused = self.check_allowed(shoot, &seen, &cluster).err();
        }
        self.say(&shoot.text(&seen, &self.args, refused.is_some()));
        if let Some(problem) = refused {
            return Err(problem);
        }
        if self.args.yes && shoot.is_pending() {
            if self.args.force {
                self.pause(shoot).await?;
            }
            let namespace = shoot.namespace.clone();
            tokio::select! {
                restored = self.carry_out(shoot, cluster) => restored?,
                why = self.stopped(&namespace) => bail!("{why}"),
            }
        }
        let unknown = shoot.steps.iter().find(|step| step.is_unknown());
        if let Some(PlannedStep { dependent, .. }) = unknown {
            let resource = &dependent.resource;
            bail!("{resource} could not be read: it may be held down or not");
        }
        Ok(())
    }

    /// Fails with why the shoot is not to be restored. Not knowing is no reason to bring anything
    /// back.
    fn check_allowed(
        &self,
        shoot: &mut ShootRestore,
        seen: &ShootEntry,
        cluster: &ClusterState,
    ) -> anyhow::Result<()> {
        let RestoreArgs { all, force, .. } = self.args;
        if !cluster.is_probed() {
            let because = &seen.because;
            ensure!(
                force && !all,
                "{because}; it comes back only when it is named, with --force"
            );
        }
        if let Some(verdicts) = &self.verdicts {
            let verdict = verdicts.of(&shoot.namespace);
            let forced = |why| anyhow::anyhow!("{why}; --force restores it all the same");
            shoot.verdict = Some(verdict.map_err(forced)?);
        }
        Ok(())
    }

    /// Waits until the prober does not say any more that the nodes of a shoot reach their API server.
    async fn stopped(&self, namespace: &str) -> String {
        match &self.verdicts {
            Some(verdicts) => verdicts.until_not_up(namespace).await,
            None => std::future::pending().await,
        }
    }

    async fn carry_out(
        &self,
        shoot: &mut ShootRestore,
        cluster: Arc<ClusterState>,
    ) -> anyhow::Result<()> {
        let mut restore = ManualRestore::start(self.shared.clone(), &shoot.namespace, cluster);
        while let Some(event) = restore.next().await? {
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
        let (reader, name) = (&self.reader, &shoot.namespace);
        // A pause that nobody can see to be in force would only keep the prober from restoring.
        let options = reader
            .options(name)
            .context("the namespaces cannot be watched, so it is not paused")?;
        // Who may not annotate it has it annotated before.
        if !(options.pause.value && options.pause.from == Source::Namespace) {
            let namespaces: Api<Namespace> = Api::all(self.client.clone());
            let patch = json!({ "metadata": { "annotations": { PAUSE: "true" } } });
            namespaces
                .patch(name, &PatchParams::default(), &Patch::Merge(&patch))
                .await
                .context("its namespace cannot be annotated, and so not be paused")?;
        }
        let command = format!("kubectl annotate namespace {name} {PAUSE}-");
        eprintln!(
            "note: {name} is paused: the prober writes nothing for it until you say\n  {command}"
        );
        shoot.unpause = Some(command);
        let seen = async {
            let is_paused = || {
                reader
                    .options(name)
                    .is_some_and(|options| options.pause.value)
            };
            while !is_paused() {
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
            let _ = print(&plain(text));
        }
    }
}
