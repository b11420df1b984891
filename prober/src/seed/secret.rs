//! The Secrets that hold the kubeconfigs of the shoots.

use std::sync::Arc;

use common::metrics::UnreadableObjects;
use common::objects::metadata;
use common::view::View;
use go_compat::null::null_as_default;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::core::ObjectMeta;
use kube::{Api, Client, Resource};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::seed::{PER_PAGE, Seed};
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

impl From<PrunedSecret> for KubeconfigSecret {
    fn from(secret: PrunedSecret) -> Self {
        Self {
            kubeconfig: secret.data.kubeconfig.map(|bytes| bytes.0),
        }
    }
}

pub struct SecretView {
    pub name: String,
    pub view: Arc<View<KubeconfigSecret>>,
    pub ended: CancellationToken,
}

impl SecretView {
    pub fn new(name: &str, unreadable: &UnreadableObjects, ended: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            view: View::new("secrets", unreadable),
            ended,
        })
    }

    /// Keeps the view up to date until it is ended.
    pub fn run(&self, client: Client) -> impl Future<Output = ()> + Send + use<> {
        let named = ListParams::default().fields(&format!("metadata.name={}", self.name));
        let prune = |secret: PrunedSecret| Some(KubeconfigSecret::from(secret));
        Arc::clone(&self.view).run(
            Api::all(client),
            named.limit(PER_PAGE),
            prune,
            None,
            self.ended.clone(),
        )
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
