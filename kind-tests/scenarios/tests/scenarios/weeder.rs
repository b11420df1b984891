//! The weeder on a seed whose ReplicaSets and EndpointSlices are kept by Kubernetes' own
//! controllers. The scenarios are the kubelets: they say which pods are ready and which crash-loop.

mod election;
pub mod ground;
pub mod plane;

use anyhow::{Result, bail, ensure};
use serde_json::json;
use testbed::agent::RunningAgent;
use testbed::{Testbed, own_scenario};

use self::ground::{Ground, NODE, no_window};
use self::plane::{API, ETCD, Plane, PodPhase};
use crate::{PATIENT, shows};

/// Runs a scenario on the testbed's own control plane; on clusters with kubelets of their own
/// nobody can play them.
pub fn on_ground(act: impl AsyncFn(&'static Testbed) -> Result<()>) -> Result<()> {
    own_scenario(
        "needs a control plane without kubelets, of the testbed's own",
        act,
    )
}

#[test]
fn etcd_back_restarts_kube_apiserver_and_kube_apiserver_back_restarts_its_dependants() -> Result<()>
{
    on_ground(async |bed| {
        let plane = Plane::create(bed, "chain", 1).await?;
        // A disruption budget is no obstacle to a pod that serves nobody anyway.
        let selector = json!({"matchLabels": {"role": "apiserver"}});
        let metadata = json!({"name": "none", "namespace": plane.namespace});
        let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": {"maxUnavailable": 0, "selector": selector}});
        plane.api().create(&budget).await?;
        plane
            .all("controller-manager", PodPhase::Terminated)
            .await?;
        let (servers, managers) = (
            plane.outage(None).await?,
            plane.pods("controller-manager").await?,
        );
        plane.recovery(&servers).await?;
        ensure!(
            plane.pods("controller-manager").await? == managers,
            "what they need is not back yet"
        );
        plane.all("apiserver", PodPhase::Ready).await?;
        plane.replaced("controller-manager", &managers).await?;
        plane.end(2).await
    })
}

#[test]
fn a_service_scaled_to_zero_and_back_restarts_its_dependants_on_the_way_back_only() -> Result<()> {
    on_ground(async |bed| {
        let plane = Plane::create(bed, "zero", 1).await?;
        plane.all("apiserver", PodPhase::NotReady).await?;
        plane.unready(API).await?;
        plane.all("apiserver", PodPhase::Ready).await?;
        plane.service(API, true).await?;
        plane.scale("apiserver", 0).await?;
        plane.left_alone(API).await?;
        plane.all("controller-manager", PodPhase::Crashing).await?;
        let managers = plane.pods("controller-manager").await?;
        plane.scale("apiserver", 1).await?;
        plane.all("apiserver", PodPhase::NotReady).await?;
        ensure!(plane.ground.deletes(&plane.namespace).is_empty());
        plane.all("apiserver", PodPhase::Ready).await?;
        plane.replaced("controller-manager", &managers).await?;
        plane.end(1).await
    })
}

#[test]
fn a_pod_of_the_same_name_with_another_uid_survives() -> Result<()> {
    on_ground(async |bed| {
        let ground = Ground::own(bed).await?;
        let weeder = ground.leader(&PATIENT).await?;
        let plane = Plane::on(&ground, "namesake", 1).await?;
        // Which of its two watches a process reads first after a pause is up to chance: it must
        // have been the right one once.
        for round in 1..=ROUNDS {
            replaced_during_a_stop(&plane, &weeder).await?;
            let (namesakes, others): (Vec<_>, Vec<_>) = plane
                .answers()
                .into_iter()
                .partition(|(name, _)| name == "namesake");
            ensure!(
                namesakes.iter().all(|(_, code)| *code == 409),
                "{namesakes:?}"
            );
            ensure!(
                others.len() == round,
                "one barrier a round, and no more: {others:?}"
            );
            if !namesakes.is_empty() {
                let replaced = "dwd_weeder_deletions_total{result=\"replaced\"}";
                let count = namesakes.len() as f64;
                shows(weeder.log_file(), replaced, count..=count).await?;
                plane.end(round + namesakes.len()).await?;
                return Ok(());
            }
        }
        bail!("in {ROUNDS} rounds no DELETE came too late")
    })
}

/// Were it left to a coin, one of a million runs would end without a DELETE that comes too late.
const ROUNDS: usize = 20;

/// While the weeder is held up, etcd recovers and a crash-looping pod is replaced by a healthy one
/// of the same name.
async fn replaced_during_a_stop(plane: &Plane, weeder: &RunningAgent) -> Result<()> {
    let path = plane.path("/api/v1", "pods/namesake");
    let labels = json!({"gardener.cloud/role": "controlplane", "role": "apiserver"});
    let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "none-such", "controller": true});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "namesake", "namespace": plane.namespace, "labels": labels, "ownerReferences": [owner]},
        "spec": {"nodeName": NODE, "containers": [{"name": "c", "image": "example.org/c"}]},
    });
    plane.api().delete(&path).await?;
    plane.all("main", PodPhase::NotReady).await?;
    plane.service(ETCD, false).await?;
    no_window(weeder).await?;
    plane.api().create(&pod).await?;
    plane.set("namesake", PodPhase::Crashing).await?;
    weeder.pause(true)?;
    plane.all("main", PodPhase::Ready).await?;
    plane.service(ETCD, true).await?;
    plane.api().delete(&path).await?;
    plane.api().create(&pod).await?;
    plane.set("namesake", PodPhase::Ready).await?;
    let uid = plane.api().get(&path).await?["metadata"]["uid"].clone();
    weeder.pause(false)?;
    plane.barrier().await?;
    let now = plane.api().find(&path).await?;
    ensure!(
        now.is_some_and(|pod| pod["metadata"]["uid"] == uid),
        "the new pod was deleted"
    );
    Ok(())
}
