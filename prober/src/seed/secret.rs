//! The Secrets that hold the kubeconfigs of the shoots.

use std::sync::Arc;

use common::metrics::LabelledCounters;
use common::objects::metadata;
use common::view::View;
use go_compat::null::null_as_default;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::core::ObjectMeta;
use kube::{Api, Client, Resource};
use serde::Deserialize;

use crate::seed::{Seed, named};
use crate::shoot_client::KubeconfigSecret;
use crate::shoot_client::error::Cause;

/// A Secret, pruned to the kubeconfig (rule 41).
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = Secret)]
struct PrunedSecret {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "null_as_default")]
    data: SecretData,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct SecretData {
    kubeconfig: Option<ByteString>,
}

pub struct SecretView {
    pub name: String,
    pub view: Arc<View<KubeconfigSecret>>,
}

impl SecretView {
    pub fn new(name: &str, unreadable: &LabelledCounters) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            view: View::new("secrets", unreadable),
        })
    }

    /// Keeps the view up to date.
    pub fn run(&self, client: Client) -> impl Future<Output = ()> + Send + use<> {
        let prune = |PrunedSecret { data, .. }| {
            let kubeconfig = data.kubeconfig.map(|ByteString(bytes)| bytes);
            Some(KubeconfigSecret { kubeconfig })
        };
        Arc::clone(&self.view).run(Api::all(client), named(&self.name), prune, None)
    }
}

const UNKNOWN: Cause = Cause::SeedUnknown("Secrets");

impl Seed {
    /// The Secret of the shoot in a namespace.
    pub fn kubeconfig(&self, namespace: &str) -> Result<Arc<KubeconfigSecret>, Cause> {
        let secrets = self.secrets().ok_or(UNKNOWN)?;
        match secrets.view.get(namespace, &secrets.name) {
            _ if !secrets.view.is_known() => Err(UNKNOWN),
            Some(secret) => Ok(secret),
            None => Err(Cause::NoSecret),
        }
    }
}
