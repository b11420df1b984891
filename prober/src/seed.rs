//! What is known of the seed: a handful of watches, each narrowed by a field selector and pruned, for all shoots together.

pub mod dependent;
pub mod secret;

use std::collections::HashSet;
use std::sync::Arc;

use common::view::{Key, View};
use k8s_openapi::api::core::v1::Secret;
use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::dependent::DependentView;
use self::secret::{KubeconfigSecret, ShootSecret};
use crate::config::{Config, ResourceRef};
use crate::gardener::{Cluster, Machine, Shoot};

/// What is kept of a Cluster.
#[derive(Debug)]
pub struct ClusterState {
    /// Distinguishes it from a successor of the same name.
    pub uid: String,
    /// The embedded shoot, absent, or why it cannot be understood.
    pub shoot: Option<Result<Shoot, String>>,
}

/// The seed's API server and what is watched there.
pub struct Seed {
    /// For writes, and for reading anew.
    pub client: Client,
    /// The shoots.
    pub clusters: Arc<View<ClusterState>>,
    /// Per Machine that is neither Failed nor Terminating, the node that it backs.
    machines: Arc<View<String>>,
    secrets: Arc<View<KubeconfigSecret>>,
    secret_name: String,
    dependents: Vec<Arc<DependentView>>,
}

impl Seed {
    /// Views that still have to run.
    pub fn new(client: Client, config: &Config) -> Self {
        Self {
            client,
            clusters: View::new("clusters"),
            machines: View::new("machines"),
            secrets: View::new("secrets"),
            secret_name: config.kubeconfig_secret_name.clone(),
            dependents: config.dependents.iter().map(|dependent| DependentView::new(dependent.resource.clone())).collect(),
        }
    }

    /// Starts the watches. Clusters that may have changed go to `changes`.
    pub fn watch(&self, changes: mpsc::Sender<Key>, cancelled: &CancellationToken) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let client = || self.client.clone();
        let clusters: Api<DeserializeGuard<Cluster>> = Api::all(client());
        let prune = |cluster: Cluster| Some(ClusterState { uid: cluster.uid().unwrap_or_default(), shoot: cluster.spec.shoot });
        tasks.spawn(Arc::clone(&self.clusters).run(
            clusters,
            watcher::Config::default(),
            prune,
            Some(changes),
            cancelled.clone(),
        ));

        let machines: Api<DeserializeGuard<Machine>> = Api::all(client());
        let prune = |machine: Machine| machine.usable_node().map(str::to_owned);
        tasks.spawn(Arc::clone(&self.machines).run(machines, watcher::Config::default(), prune, None, cancelled.clone()));

        let secrets: Api<DeserializeGuard<Secret>> = Api::all(client());
        let named = watcher::Config::default().fields(&format!("metadata.name={}", self.secret_name));
        let prune = |secret| Some(KubeconfigSecret::of(secret));
        tasks.spawn(Arc::clone(&self.secrets).run(secrets, named, prune, None, cancelled.clone()));

        for dependent in &self.dependents {
            tasks.spawn(Arc::clone(dependent).run(client(), cancelled.clone()));
        }
        tasks
    }

    /// Waits until every view was filled once.
    pub async fn filled(&self) {
        futures::join!(self.clusters.live(), self.machines.live(), self.secrets.live());
        futures::future::join_all(self.dependents.iter().map(|dependent| dependent.filled())).await;
    }

    /// What of the seed is not known at present, if anything; dependents are left out, since their kinds may not exist.
    pub fn unknown(&self) -> Option<&'static str> {
        let views = [
            (self.clusters.is_known(), "Clusters"),
            (self.machines.is_known(), "Machines"),
            (self.secrets.is_known(), "Secrets"),
        ];
        views.into_iter().find(|(known, _)| !known).map(|(_, what)| what)
    }

    /// The Secret with the kubeconfig of one shoot.
    pub fn secret_of(&self, namespace: &str) -> ShootSecret {
        ShootSecret {
            view: Arc::clone(&self.secrets),
            client: self.client.clone(),
            namespace: namespace.to_owned(),
            name: self.secret_name.clone(),
        }
    }

    /// The nodes of a shoot that usable Machines back; none when the Machines are not known (D-27).
    pub fn backed_nodes(&self, namespace: &str) -> Option<HashSet<String>> {
        self.machines.is_known().then(|| self.machines.all_in(namespace).iter().map(|node| node.as_ref().clone()).collect())
    }

    /// The view of a configured dependent.
    pub fn dependent(&self, resource: &ResourceRef) -> Option<&Arc<DependentView>> {
        self.dependents.iter().find(|dependent| dependent.resource == *resource)
    }
}
