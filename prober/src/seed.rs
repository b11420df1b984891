//! View of the seed: a handful of watches, each narrowed by a field selector and pruned, for all
//! shoots together.

pub mod cluster;
mod confirm;
pub mod dependent;
pub mod secret;
pub(crate) mod wakers;
pub mod watches;

use std::sync::Arc;

use common::metrics::LabelledCounters;
use common::view::{Namespaced, View};
use futures::future::join_all;
use k8s_openapi::api::core::v1;
use kube::Client;
use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use parking_lot::RwLock;
use prober_core::config::{Config, ResourceRef};
use prober_core::options::{GARDEN, Overrides, ResolvedOptions};
use prober_core::replicas::DependentState;

pub use self::cluster::ClusterState;
use self::dependent::DependentView;
use self::secret::SecretView;
use self::wakers::Wakers;
pub use self::watches::SeedWatches;

/// Objects in a page of a list: some 10 kB each, and a page is held twice while it is read.
const PER_PAGE: u32 = 100;

/// Only its annotations are read.
type Namespace = PartialObjectMeta<v1::Namespace>;

/// Selects the objects of this name in all namespaces.
fn named(name: &str) -> ListParams {
    let name = format!("metadata.name={name}");
    ListParams::default().fields(&name).limit(PER_PAGE)
}

pub struct Seed {
    pub client: Client,
    pub clusters: Arc<View<ClusterState>>,
    /// Node that each Machine backs; `None` if it backs none, or is Failed or Terminating.
    machines: Arc<View<Option<Arc<str>>>>,
    /// Settings by annotations on namespaces; only those that set anything.
    namespaces: Arc<View<Overrides>>,
    named: RwLock<Named>,
    /// The shoots' tasks, which are woken by what concerns them.
    pub wakers: Arc<Wakers>,
    pub(crate) unreadable: LabelledCounters,
}

/// Objects that the config names.
#[derive(Clone, Default)]
struct Named {
    /// `None` before [`Seed::watch`].
    secrets: Option<Arc<SecretView>>,
    dependents: Vec<Arc<DependentView>>,
}

impl Seed {
    /// Knows nothing before [`Self::watch`].
    pub fn new(client: Client) -> Self {
        let unreadable = LabelledCounters::default();
        Self {
            client,
            clusters: View::new("clusters", &unreadable),
            machines: View::new("machines", &unreadable),
            namespaces: View::new("namespaces", &unreadable),
            named: RwLock::default(),
            wakers: Arc::default(),
            unreadable,
        }
    }

    /// Waits until every view was filled once.
    pub async fn filled(&self) {
        let Named {
            secrets,
            dependents,
        } = self.named.read().clone();
        futures::join!(
            self.clusters.live(),
            self.machines.live(),
            self.namespaces.live(),
            join_all(secrets.iter().map(|secrets| secrets.view.live())),
            join_all(dependents.iter().map(|dependent| dependent.view.live()))
        );
    }

    /// Kind of objects not known at present, if any. Dependents are left out, since their kinds may
    /// not exist, and namespaces, without which the leader protects all the same.
    pub fn unknown(&self) -> Option<&'static str> {
        let named = self.named.read();
        let secrets = named.secrets.as_ref();
        let views = [
            (self.clusters.is_known(), "Clusters"),
            (self.machines.is_known(), "Machines"),
            (
                secrets.is_none_or(|secrets| secrets.view.is_known()),
                "Secrets",
            ),
        ];
        let unknown = views.into_iter().find(|(is_known, _)| !is_known);
        unknown.map(|(_, what)| what)
    }

    /// True if all is known that shoots are protected and restored by: the above, every dependent
    /// whose kind exists, and what is paused.
    pub fn is_known(&self) -> bool {
        self.unknown().is_none()
            && self.namespaces.is_known()
            && self
                .dependents()
                .iter()
                .all(|dependent| !dependent.is_unknown())
    }

    pub fn secrets(&self) -> Option<Arc<SecretView>> {
        self.named.read().secrets.clone()
    }

    pub fn dependents(&self) -> Vec<Arc<DependentView>> {
        self.named.read().dependents.clone()
    }

    /// Options of the shoot in a namespace, or of one whose namespace sets nothing; `None` if the
    /// namespaces are not known (D-27).
    pub fn options(&self, config: &Config, namespace: Option<&str>) -> Option<ResolvedOptions> {
        // What is read before it is known may be out of date when it is.
        if !self.namespaces.is_known() {
            return None;
        }
        let of = |name| self.namespaces.get("", name);
        let (garden, own) = (of(GARDEN), namespace.and_then(of));
        let (garden, own) = (garden.as_deref(), own.as_deref());
        Some(ResolvedOptions::resolve(config, garden, own))
    }

    /// The Machines of a shoot, each with the node that it backs, if any; `None` if the Machines
    /// are not known (D-27). The very same while nothing has changed.
    pub fn machines(&self, namespace: &str) -> Option<Arc<Namespaced<Option<Arc<str>>>>> {
        self.machines
            .is_known()
            .then(|| self.machines.all_in(namespace))
    }

    pub fn state(&self, resource: &ResourceRef, namespace: &str) -> DependentState {
        let view = self.dependent(resource);
        view.map(|view| view.state(namespace)).unwrap_or_default()
    }

    pub fn dependent(&self, resource: &ResourceRef) -> Option<Arc<DependentView>> {
        let named = self.named.read();
        let mut dependents = named.dependents.iter();
        dependents.find(|view| view.resource == *resource).cloned()
    }
}
