//! A seed for weeders with the Services and pods of a shoot's control plane. The scenarios are their
//! kubelets and controllers: they say which Services are ready and which pods crash-loop.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::agent::RunningAgent;
use testbed::audit::Asked;
use testbed::crash_loop::{self, PodHealth, ROLE, pod, set_health, slice};
use testbed::gardener::{self, WEEDER_USER, weeder_access};
use testbed::kube_api::KubeApi;
use testbed::{SeedCluster, Testbed, eventually, unique};

/// The Services, each with the pod that needs it, which is named for its role.
pub const ETCD: (&str, &str) = ("etcd-main-client", "apiserver");
pub const SERVER: (&str, &str) = ("kube-apiserver", "controller-manager");

/// The control plane of a shoot, as far as it matters to the weeder.
pub struct Plane {
    pub namespace: String,
    pub seed: Arc<SeedCluster>,
}

impl Plane {
    /// Makes one whose Services are not ready.
    pub async fn create(bed: &'static Testbed, name: &str) -> Result<Self> {
        let plane = Self {
            namespace: format!("weeder-{}", unique(name)),
            seed: bed.own_seed().await?,
        };
        let (api, namespace) = (plane.api(), plane.namespace.as_str());
        api.create_all(&weeder_access()).await?;
        api.create(&gardener::namespace(namespace)).await?;
        for (service, role) in [ETCD, SERVER] {
            let labels = json!({ROLE.0: ROLE.1, "role": role});
            let pod = pod(namespace, role, &labels, Some(role), PodHealth::Running);
            api.create_all(&[slice(namespace, service, false), pod])
                .await?;
        }
        Ok(plane)
    }

    pub fn api(&self) -> &KubeApi {
        self.seed.api()
    }

    /// What weeders have asked for.
    pub fn asked(&self) -> Vec<Asked> {
        self.seed.asked_by(WEEDER_USER)
    }

    /// Waits until a weeder leads and has watched both kinds of objects.
    pub async fn watched(&self, weeder: &RunningAgent) -> Result<()> {
        eventually("the weeder leads and watches", async || {
            let asked = self.asked().into_iter();
            let watches = asked.filter(|asked| asked.verb == "watch" && asked.code == 200);
            let watched: BTreeSet<String> = watches.map(|asked| asked.resource).collect();
            let both = ["pods", "endpointslices"]
                .iter()
                .all(|it| watched.contains(*it));
            let leads = !weeder.log("\"leading\"").is_empty();
            ensure!(both && leads, "{watched:?}\n{}", weeder.tail(20));
            Ok(())
        })
        .await
    }

    /// The answers to weeders' deletions here. No Event may tell a credential.
    pub async fn deletions(&self) -> Result<Vec<u64>> {
        self.seed.search_events().await?;
        let asked = self.asked().into_iter();
        let deletions = asked.filter(|asked| asked.verb == "delete");
        Ok(deletions.map(|asked| asked.code).collect())
    }

    /// The pod that needs this Service crash-loops.
    pub async fn crash(&self, (_, pod): (&str, &str), health: PodHealth) -> Result<()> {
        set_health(self.api(), &self.namespace, pod, health).await
    }

    /// A Service recovers.
    pub async fn recover(&self, (service, _): (&str, &str)) -> Result<()> {
        crash_loop::set_ready(self.api(), &self.namespace, service, true).await
    }

    /// Whether the pod that needs this Service is there.
    pub async fn is_there(&self, (_, pod): (&str, &str)) -> Result<bool> {
        let path = format!("/api/v1/namespaces/{}/pods/{pod}", self.namespace);
        Ok(self.api().find(&path).await?.is_some())
    }

    /// Waits until it is deleted.
    pub async fn deleted(&self, service: (&str, &str)) -> Result<()> {
        eventually(&format!("{} is deleted", service.1), async || {
            ensure!(!self.is_there(service).await?, "it is there");
            Ok(())
        })
        .await
    }
}
