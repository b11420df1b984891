//! The Secrets that hold the kubeconfigs of the shoots.

use std::sync::Arc;

use common::view::View;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

use crate::seed::Seed;
use crate::seed::reach::Reach;
use crate::shoot_client::error::Cause;
use crate::shoot_client::{KubeconfigSecret, Secrets};

/// The key of the Secret's data that holds the kubeconfig (rule 41).
const KUBECONFIG: &str = "kubeconfig";

impl From<Secret> for KubeconfigSecret {
    fn from(secret: Secret) -> Self {
        Self { kubeconfig: secret.data.and_then(|mut data| data.remove(KUBECONFIG)).map(|bytes| bytes.0) }
    }
}

pub struct SecretView {
    pub name: String,
    pub view: Arc<View<KubeconfigSecret>>,
    ended: CancellationToken,
}

impl SecretView {
    pub fn new(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.to_owned(), view: View::new("secrets"), ended: CancellationToken::new() })
    }

    /// Keeps the view up to date until cancelled or ended.
    pub fn run(&self, client: Client, reach: &Reach, cancelled: &CancellationToken) -> impl Future<Output = ()> + Send + use<> {
        let api = reach.namespaced::<Secret>(client);
        let named = watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let prune = |secret| Some(KubeconfigSecret::from(secret));
        let work = Arc::clone(&self.view).run(api, named, prune, None, cancelled.clone());
        let ended = self.ended.clone();
        async move {
            ended.run_until_cancelled_owned(work).await;
        }
    }

    pub fn end(&self) {
        self.ended.cancel();
    }
}

#[derive(Clone)]
pub struct ShootSecret {
    pub seed: Arc<Seed>,
    pub namespace: String,
}

impl Secrets for ShootSecret {
    fn current(&self) -> Result<Arc<KubeconfigSecret>, Cause> {
        let secrets = self.seed.secrets();
        match secrets.view.get(&self.namespace, &secrets.name) {
            _ if !secrets.view.is_known() => Err(Cause::SeedUnknown("Secrets")),
            Some(secret) => Ok(secret),
            None => Err(Cause::NoSecret),
        }
    }

    async fn reread(&self) -> Result<Arc<KubeconfigSecret>, Cause> {
        let name = &self.seed.secrets().name;
        let api: Api<Secret> = Api::namespaced(self.seed.client.clone(), &self.namespace);
        match api.get_opt(name).await {
            Ok(Some(secret)) => Ok(Arc::new(KubeconfigSecret::from(secret))),
            Ok(None) => Err(Cause::NoSecret),
            Err(error) => {
                tracing::debug!(namespace = self.namespace, name, error = %error, "Secret cannot be read anew");
                Err(Cause::SeedUnknown("Secrets"))
            }
        }
    }
}
