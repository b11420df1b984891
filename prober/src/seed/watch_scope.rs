//! Which shoots are watched: all of them, or a single one.

use kube::core::NamespaceResourceScope;
use kube::discovery::ApiResource;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};

use super::dependent::ScalableObject;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchScope {
    Seed,
    /// All of them, and none will be probed: their kubeconfigs are not read.
    Unprobed,
    Shoot(String),
}

impl WatchScope {
    pub fn namespaced<K>(&self, client: Client) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match self {
            Self::Seed | Self::Unprobed => Api::all(client),
            Self::Shoot(namespace) => Api::namespaced(client, namespace),
        }
    }

    pub(crate) fn dynamic(&self, client: Client, kind: &ApiResource) -> Api<ScalableObject> {
        match self {
            Self::Seed | Self::Unprobed => Api::all_with(client, kind),
            Self::Shoot(namespace) => Api::namespaced_with(client, namespace, kind),
        }
    }

    /// What names the Clusters to be watched.
    pub fn named(&self) -> watcher::Config {
        match self {
            Self::Seed | Self::Unprobed => watcher::Config::default(),
            Self::Shoot(name) => {
                watcher::Config::default().fields(&format!("metadata.name={name}"))
            }
        }
    }
}
