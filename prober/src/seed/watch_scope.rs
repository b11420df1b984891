//! The part of a seed that is watched: all that a prober needs, or what people read.

use common::objects::Readable;
use kube::api::ListParams;
use kube::discovery::ApiResource;
use kube::{Api, Client};

use super::dependent::ScalableObject;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchScope {
    Seed,
    /// All shoots, or one, unprobed: neither kubeconfigs nor Machines are read.
    Unprobed(Option<String>),
}

impl WatchScope {
    /// True if shoots are probed.
    pub fn probes(&self) -> bool {
        *self == Self::Seed
    }

    fn shoot(&self) -> Option<&str> {
        match self {
            Self::Seed => None,
            Self::Unprobed(shoot) => shoot.as_deref(),
        }
    }

    pub(crate) fn dynamic(
        &self,
        client: Client,
        kind: &ApiResource,
    ) -> Api<Readable<ScalableObject>> {
        match self.shoot() {
            None => Api::all_with(client, kind),
            Some(namespace) => Api::namespaced_with(client, namespace, kind),
        }
    }

    /// Selects the Clusters to be watched.
    pub fn named(&self) -> ListParams {
        match self.shoot() {
            None => ListParams::default(),
            Some(name) => ListParams::default().fields(&format!("metadata.name={name}")),
        }
    }
}
