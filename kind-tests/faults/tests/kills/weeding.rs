//! The weeder: a recovery that frees crash-looping pods, with a kill at every write.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testbed::agent::{Kind as Agent, Start};
use testbed::api::gardener::seed_weeder;
use testbed::api::{MemoryApi, Source};
use testbed::leash;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::explorer::{Blow, Kill, Told, explore, points};
use crate::process::{Replica, UNSERVED};
use crate::scaling::ELECTION;
use crate::world::{NAMESPACE, PATIENCE, USERS, server};

/// The first windows after a start are spread over a tenth of this.
const CONFIG: &str = "\
watchDuration: 20s
servicesAndDependantSelectors:
  kube-apiserver:
    podSelectors:
    - matchLabels: {gardener.cloud/role: controlplane}
";
/// Pods that crash-loop and have an owner.
const WEEDS: [&str; 3] = ["controller", "gatekeeper", "scheduler"];
/// Pods that must stay: one that is well, one that nobody would make anew.
const FLOWERS: [&str; 2] = ["well", "ownerless"];

fn pod(name: &str) -> Value {
    let state = match name {
        "well" => json!({"running": {}}),
        _ => json!({"waiting": {"reason": "CrashLoopBackOff"}}),
    };
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": true});
    let owners = if name == "ownerless" { json!([]) } else { json!([owner]) };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": NAMESPACE, "name": name, "labels": {"gardener.cloud/role": "controlplane"}, "ownerReferences": owners,
        },
        "spec": {"containers": [{"name": "c", "image": "c"}]},
        "status": {"containerStatuses": [{"name": "c", "state": state}]},
    })
}

fn slice(ready: bool) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": [],
        "metadata": {"namespace": NAMESPACE, "name": "api", "labels": {"kubernetes.io/service-name": "kube-apiserver"}},
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}],
    })
}

/// Which pods a client has deleted, and how often.
type Deleted = Arc<Mutex<BTreeMap<String, usize>>>;

fn observe(seed: &MemoryApi) -> Deleted {
    let deleted = Deleted::default();
    let pages = Arc::clone(&deleted);
    seed.store().observe(move |seen| {
        if seen.deleted && seen.source == Source::Client && seen.resource.plural == "pods" {
            let name = seen.after["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            *pages.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
        }
    });
    deleted
}

async fn tell(kill: Option<Kill>) -> Result<Told> {
    let seed = server().await?;
    let deleted = observe(&seed);
    seed.access().grant(USERS[0], seed_weeder());
    for name in WEEDS.iter().chain(&FLOWERS) {
        seed.store().create(pod(name))?;
    }
    seed.store().create(slice(false))?;
    let folder = leash::folder("kills")?;
    let ending = Arc::new(AtomicBool::new(false));
    let trap = kill.as_ref().map(|kill| kill.prepare(&seed, &ending, &Blow::Kill));
    let start = Start::new(Agent::Weeder, &folder, USERS[0], &seed.kubeconfig(USERS[0]), CONFIG)?;
    let replica = tokio::sync::Mutex::new(Replica::start(start.with(UNSERVED).with(ELECTION))?);
    let hit = watch::Sender::new(false);
    let strike = async {
        if let Some(trap) = &trap {
            trap.sprung(&seed).await;
            if let Err(error) = replica.lock().await.kill_and_replace().await {
                return error;
            }
            hit.send_replace(true);
        }
        std::future::pending().await
    };
    let watches = |count: usize| {
        let begun = seed.requests().wait_for(move |all| {
            let watch = |resource: &str| {
                all.iter().filter(|r| r.verb == "watch" && r.resource == resource && r.status == Some(200)).count()
            };
            (watch("pods") >= count && watch("endpointslices.discovery.k8s.io") >= count).then_some(())
        });
        async { timeout(PATIENCE, begun).await.context("nothing is watched") }
    };
    let leads = |count: usize| {
        let renewed = seed.requests().wait_for(move |all| {
            let renewal = all.iter().filter(|r| r.verb == "update" && r.status == Some(200)).count();
            (renewal >= count).then_some(())
        });
        async { timeout(PATIENCE, renewed).await.context("nobody leads") }
    };
    let tale = async {
        watches(1).await?;
        seed.store().apply(slice(true))?;
        let gone =
            seed.store().wait_for(|store| WEEDS.iter().all(|name| store.get("pods", NAMESPACE, name).is_none()).then_some(()));
        timeout(PATIENCE, gone).await.context("not all is weeded")?;
        leads(4).await?;
        let ended = seed.requests().total();
        ending.store(true, Ordering::Relaxed);
        replica.lock().await.signal(Signal::SIGTERM)?;
        if kill.as_ref().is_some_and(Kill::is_at_the_end) {
            let _ = timeout(PATIENCE, hit.subscribe().wait_for(|hit| *hit)).await?;
            watches(2).await?;
            replica.lock().await.signal(Signal::SIGTERM)?;
        }
        let code = replica.lock().await.end().await?;
        ensure!(code == 0, "exit code {code}");
        anyhow::Ok(ended)
    };
    let told = tokio::select! {
        told = tale => told,
        error = strike => Err(error),
    };
    let ended = match told {
        Ok(ended) => ended,
        Err(error) => return Err(error.context(replica.lock().await.tail())),
    };
    let deleted = deleted.lock().unwrap_or_else(PoisonError::into_inner).clone();
    ensure!(deleted == WEEDS.map(|name| (name.to_owned(), 1)).into(), "deleted: {deleted:?}");
    for name in FLOWERS {
        ensure!(seed.store().get("pods", NAMESPACE, name).is_some(), "{name} is gone");
    }
    let killed = *hit.borrow();
    Ok(Told { points: points(&seed, ended), killed })
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_of_the_weeder_each_weed_is_deleted_once() -> Result<()> {
    explore("weeding", 16, tell).await
}
