//! The Secrets that hold the kubeconfigs of the shoots.

use std::sync::Arc;

use common::view::View;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::engine::Secrets;
use crate::engine::error::Cause;

/// The key of the Secret's data that holds the kubeconfig (rule 41).
const KUBECONFIG: &str = "kubeconfig";

/// What is kept of a Secret. Has no `Debug`: it holds credentials.
pub struct KubeconfigSecret {
    /// The value of the key `kubeconfig`.
    pub kubeconfig: Option<Vec<u8>>,
}

impl KubeconfigSecret {
    /// Takes the kubeconfig out of a Secret.
    pub fn of(secret: Secret) -> Self {
        Self { kubeconfig: secret.data.and_then(|mut data| data.remove(KUBECONFIG)).map(|bytes| bytes.0) }
    }
}

/// One shoot's Secret.
#[derive(Clone)]
pub struct ShootSecret {
    /// The Secrets of all shoots, as watched.
    pub view: Arc<View<KubeconfigSecret>>,
    /// For reading it anew.
    pub client: Client,
    /// The shoot's namespace on the seed.
    pub namespace: String,
    /// The Secret's name.
    pub name: String,
}

impl Secrets for ShootSecret {
    fn current(&self) -> Result<Arc<KubeconfigSecret>, Cause> {
        match self.view.get(&self.namespace, &self.name) {
            _ if !self.view.is_known() => Err(Cause::SeedUnknown("Secrets")),
            Some(secret) => Ok(secret),
            None => Err(Cause::NoSecret),
        }
    }

    async fn reread(&self) -> Result<Arc<KubeconfigSecret>, Cause> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        match api.get_opt(&self.name).await {
            Ok(Some(secret)) => Ok(Arc::new(KubeconfigSecret::of(secret))),
            Ok(None) => Err(Cause::NoSecret),
            Err(error) => {
                tracing::debug!(namespace = self.namespace, name = self.name, error = %error, "Secret cannot be read anew");
                Err(Cause::SeedUnknown("Secrets"))
            }
        }
    }
}
