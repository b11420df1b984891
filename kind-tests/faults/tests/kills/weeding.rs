//! The weeder: a recovery that frees crash-looping pods, with a kill at every write.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use api_server::{Record, User};
use parking_lot::Mutex;
use serde_json::json;
use testbed::agent::{AgentKind as RunningAgent, AgentStart};
use testbed::crash_loop::{PodHealth, ROLE, pod, slice};
use testbed::gardener::seed_weeder;
use testbed::{PATIENCE, reaper};
use tokio::time::timeout;

use crate::explorer::{Kill, Told, explore};
use crate::replicas::{KilledReplicas, LEASES};
use crate::world::{ELECTION, NAMESPACE, UNSERVED, USERS, requests, server};

/// The first windows after a start are spread over a tenth of this.
const CONFIG: &str = "\
watchDuration: 20s
servicesAndDependantSelectors:
  kube-apiserver:
    podSelectors:
    - matchLabels: {gardener.cloud/role: controlplane}
";
/// Pods that crash-loop and have an owner, by name.
const WEEDS: [&str; 3] = ["controller", "gatekeeper", "scheduler"];
/// Pods that must stay: one that is well, one that nobody would recreate.
const FLOWERS: [&str; 2] = ["well", "ownerless"];

async fn tell(kill: Option<Kill>) -> Result<Told> {
    let seed = server().await?;
    // Which pods a client has deleted, each as often as it was.
    let deleted = Arc::<Mutex<Vec<String>>>::default();
    let pages = deleted.clone();
    seed.store().observe(move |seen| {
        if seen.deleted && seen.request.is_some() && seen.resource.plural == "pods" {
            pages
                .lock()
                .extend(seen.after["metadata"]["name"].as_str().map(str::to_owned));
        }
    });
    seed.access().grant(
        USERS[0],
        User {
            name: USERS[0].to_owned(),
            ..seed_weeder()
        },
    );
    for name in WEEDS.iter().chain(&FLOWERS) {
        let owner = Some(*name).filter(|name| *name != "ownerless");
        let state = if *name == "well" {
            PodHealth::Running
        } else {
            PodHealth::Waiting
        };
        seed.store()
            .create(pod(NAMESPACE, name, &json!({ROLE.0: ROLE.1}), owner, state))?;
    }
    seed.store()
        .create(slice(NAMESPACE, "kube-apiserver", false))?;
    let folder = reaper::folder("kills")?;
    let start = AgentStart::new(
        RunningAgent::Weeder,
        &folder,
        USERS[0],
        &seed.kubeconfig(USERS[0]),
        CONFIG,
    )?;
    let replicas = KilledReplicas::start(
        &seed,
        kill,
        false,
        USERS[0],
        start.with(UNSERVED).with(ELECTION),
    )?;
    let answered = async |verb: &str, resource: &str, count: usize| {
        let so = |record: &Record| {
            record.verb == verb && record.resource == resource && record.status == Some(200)
        };
        requests(&seed, count, &format!("{verb} {resource}"), so).await
    };
    let tale = async {
        answered("watch", "pods", 1).await?;
        answered("watch", "endpointslices.discovery.k8s.io", 1).await?;
        seed.store()
            .apply(slice(NAMESPACE, "kube-apiserver", true))?;
        let gone = seed.store().wait_for(|store| {
            WEEDS
                .iter()
                .all(|name| store.get("pods", NAMESPACE, name).is_none())
                .then_some(())
        });
        timeout(PATIENCE, gone).await.context("not all is weeded")?;
        answered("update", LEASES, 4).await
    };
    let played = replicas.play(tale).await?;
    let mut deleted = deleted.lock().clone();
    deleted.sort();
    ensure!(deleted == WEEDS, "deleted: {deleted:?}");
    for name in FLOWERS {
        ensure!(
            seed.store().get("pods", NAMESPACE, name).is_some(),
            "{name} is gone"
        );
    }
    Ok(played)
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_each_pod_is_deleted_once() -> Result<()> {
    explore("weeding", 14, tell).await
}
