//! The weeder: a recovery that frees crash-looping pods, with a kill at every write.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use faults::lock;
use faults::pods::{ROLE, pod, slice};
use serde_json::json;
use testbed::agent::{Kind as Agent, Start};
use testbed::api::{MemoryApi, Source, User};
use testbed::gardener::seed_weeder;
use testbed::leash;
use tokio::time::timeout;

use crate::explorer::{Kill, Told, explore};
use crate::process::UNSERVED;
use crate::replicas::{Blow, Replicas};
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
/// Pods that must stay: one that is well, one that nobody would recreate.
const FLOWERS: [&str; 2] = ["well", "ownerless"];

/// Which pods a client has deleted, and how often.
type Deleted = Arc<Mutex<BTreeMap<String, usize>>>;

fn observe(seed: &MemoryApi) -> Deleted {
    let deleted = Deleted::default();
    let pages = Arc::clone(&deleted);
    seed.store().observe(move |seen| {
        if seen.deleted && seen.source == Source::Client && seen.resource.plural == "pods" {
            let name = seen.after["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            *lock(&pages).entry(name).or_default() += 1;
        }
    });
    deleted
}

async fn tell(kill: Option<Kill>) -> Result<Told> {
    let seed = server().await?;
    let deleted = observe(&seed);
    let user = User { name: USERS[0].to_owned(), ..seed_weeder() };
    seed.access().grant(USERS[0], user);
    for name in WEEDS.iter().chain(&FLOWERS) {
        let owner = Some(*name).filter(|name| *name != "ownerless");
        seed.store().create(pod(NAMESPACE, name, &json!({ROLE.0: ROLE.1}), owner, *name != "well"))?;
    }
    seed.store().create(slice(NAMESPACE, "kube-apiserver", false))?;
    let folder = leash::folder("kills")?;
    let start = Start::new(Agent::Weeder, &folder, USERS[0], &seed.kubeconfig(USERS[0]), CONFIG)?;
    let replicas = Replicas::start(&seed, kill, Blow::Replace, USERS[0], start.with(UNSERVED).with(ELECTION))?;
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
        seed.store().apply(slice(NAMESPACE, "kube-apiserver", true))?;
        let gone =
            seed.store().wait_for(|store| WEEDS.iter().all(|name| store.get("pods", NAMESPACE, name).is_none()).then_some(()));
        timeout(PATIENCE, gone).await.context("not all is weeded")?;
        leads(4).await
    };
    let told = replicas.play(tale, async || watches(2).await).await?;
    let deleted = lock(&deleted).clone();
    ensure!(deleted == WEEDS.map(|name| (name.to_owned(), 1)).into(), "deleted: {deleted:?}");
    for name in FLOWERS {
        ensure!(seed.store().get("pods", NAMESPACE, name).is_some(), "{name} is gone");
    }
    Ok(told)
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_of_the_weeder_each_weed_is_deleted_once() -> Result<()> {
    explore("weeding", 16, tell).await
}
