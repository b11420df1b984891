//! A shoot's API server with a few nodes, and a client that probes it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use api_server::protobuf::wire::{MEDIA_TYPE, envelope};
use api_server::{Authority, Fault, FaultId, MemoryApi, Options, Record, Serving, When};
use parking_lot::Mutex;
use prober::clock::Clock;
use prober::shoot_client::KubeconfigSecret;
use prober::shoot_client::error::{Cause, ProbeError};
use prober::shoot_client::resources::Resources;
use prober::shoot_client::{Budget, Listing, Secrets, ShootClient};
use prober_core::lease::LeaseList;
use prober_core::verdict::NodeRecord;
use serde_json::json;

pub const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
pub const NODES: &str = "/api/v1/nodes";
pub const VERSION: &str = "/version";

/// The token that every shoot here starts with; it must never be found in an error.
pub const TOKEN: &str = "t0k3n-0f-th3-pr0b3";

/// Beyond its budget a probe may take this long on a busy machine before the test fails.
const LEEWAY: Duration = Duration::from_secs(5);

pub struct TestShoot {
    pub api: MemoryApi,
    pub secret: Secret,
    pub client: ShootClient<Secret>,
    pub clock: Clock,
    pub resources: Arc<Resources>,
    /// What one probe may take.
    pub timeout: Duration,
}

/// A Secret as the seed's watch shows it, and as it is stored.
#[derive(Clone, Default)]
pub struct Secret(Arc<Mutex<SecretState>>);

#[derive(Default)]
struct SecretState {
    watched: Option<Arc<KubeconfigSecret>>,
    stored: Option<Arc<KubeconfigSecret>>,
    rereads: usize,
}

impl Secret {
    /// Changes the Secret, and the watch shows it.
    pub fn set(&self, kubeconfig: &str) {
        self.set_data(Some(kubeconfig));
    }

    /// Changes the Secret's data, and the watch shows it.
    pub fn set_data(&self, kubeconfig: Option<&str>) {
        self.set_unnoticed(kubeconfig);
        let mut state = self.0.lock();
        state.watched = state.stored.clone();
    }

    /// Changes the Secret, and the watch does not show it yet.
    pub fn set_unnoticed(&self, kubeconfig: Option<&str>) {
        let kubeconfig = kubeconfig.map(|text| text.as_bytes().to_vec());
        self.0.lock().stored = Some(Arc::new(KubeconfigSecret { kubeconfig }));
    }

    pub fn delete(&self) {
        *self.0.lock() = SecretState::default();
    }

    /// How often it was read again.
    pub fn rereads(&self) -> usize {
        self.0.lock().rereads
    }
}

impl Secrets for Secret {
    fn current(&self) -> Result<Arc<KubeconfigSecret>, Cause> {
        self.0.lock().watched.clone().ok_or(Cause::NoSecret)
    }

    async fn reread(&self) -> Result<Arc<KubeconfigSecret>, Cause> {
        let mut state = self.0.lock();
        state.rereads += 1;
        state.stored.clone().ok_or(Cause::NoSecret)
    }
}

impl TestShoot {
    /// An ordinary API server with three nodes.
    pub async fn start() -> Self {
        Self::with(Options::default()).await
    }

    /// An API server of another kind, with three nodes.
    pub async fn with(options: Options) -> Self {
        // Another test of this process may have installed it already.
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        let authority = Authority::new().expect("an authority");
        let api = MemoryApi::start(&authority, options)
            .await
            .expect("an API server");
        api.access().grant(TOKEN, testbed::gardener::shoot_probe());
        let secret = Secret::default();
        secret.set(&api.kubeconfig(TOKEN));
        let clock = Clock::start();
        let resources = Arc::new(Resources::of_system());
        let client = ShootClient::new(clock, Arc::clone(&resources), secret.clone());
        let shoot = Self {
            api,
            secret,
            client,
            clock,
            resources,
            timeout: Duration::from_secs(2),
        };
        shoot.add_nodes(0..3);
        shoot
    }

    /// An API server whose certificate is for these names, with three nodes.
    pub async fn certified(names: &[&str], expired: bool) -> Self {
        let names = names.iter().map(ToString::to_string).collect();
        let serving = Serving { names, expired };
        Self::with(Options {
            serving,
            ..Options::default()
        })
        .await
    }

    /// Changes the Secret to one that leads to this URL, with a line more in its cluster.
    pub fn lead(&self, url: &str, line: &str) {
        let kubeconfig = self.api.kubeconfig_at(url, TOKEN);
        let lines = format!("    {line}\n    server:");
        self.secret.set(&kubeconfig.replace("    server:", &lines));
    }

    /// Every request for this path meets a fault from now on.
    pub fn meets(&self, path: &str, fault: Fault) -> FaultId {
        self.api.faults().add(When::request("GET", path), fault)
    }

    /// The next request for this path meets a fault.
    pub fn meets_once(&self, path: &str, fault: Fault) -> FaultId {
        let next = When::request("GET", path).once();
        self.api.faults().add(next, fault)
    }

    /// Probes with others of what all shoots share from now on.
    pub fn share(&mut self, resources: &Arc<Resources>) {
        self.resources = Arc::clone(resources);
        self.client = ShootClient::new(self.clock, Arc::clone(resources), self.secret.clone());
    }

    /// Adds nodes with their leases.
    pub fn add_nodes(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            let name = format!("node-{number:04}");
            let node = json!({"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"worker.gardener.cloud/pool": "w1"}},
                "status": {"conditions": [{"type": "DiskPressure", "status": "False", "reason": "Kubelet"}]}});
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": name, "namespace": "kube-node-lease"},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-03-01T12:00:07.123456Z"}});
            self.api.store().create(node).expect("a node");
            self.api.store().create(lease).expect("a lease");
        }
    }

    /// Probes; the leases.
    pub async fn leases(&mut self) -> Result<Listing<LeaseList>, ProbeError> {
        let budget = Budget::starting_now(self.timeout);
        checked(self.timeout, self.client.leases(budget)).await
    }

    /// Probes; the leases and the nodes.
    pub async fn nodes(&mut self) -> Result<Listing<Vec<NodeRecord>>, ProbeError> {
        let budget = Budget::starting_now(self.timeout);
        let probe = async {
            self.client.leases(budget).await?;
            self.client.nodes(budget).await
        };
        checked(self.timeout, probe).await
    }

    /// A probe that must succeed.
    pub async fn healthy(&mut self) {
        let seen = self.leases().await.expect("a complete answer");
        assert!(!seen.items.is_empty());
    }

    /// A probe that must fail: its stage and category.
    pub async fn failed(&mut self) -> (&'static str, &'static str) {
        words(&self.leases().await.expect_err("no complete answer"))
    }

    /// The requests for a path since the last call of [`Self::asked`].
    pub fn requests(&self, path: &str) -> Vec<Record> {
        let mut all = self.api.requests().all();
        all.retain(|record| record.path == path);
        all
    }

    /// The paths that were asked for since the last call.
    pub fn asked(&self) -> Vec<String> {
        let all = self.api.requests().all().into_iter();
        let paths = all.map(|record| record.path).collect();
        self.api.requests().clear();
        paths
    }
}

/// An answer with these headers.
pub fn answer(code: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Fault {
    let headers = headers.iter();
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_string()));
    Fault::Answer {
        code,
        headers: headers.collect(),
        body: body.as_ref().to_vec().into(),
    }
}

/// An answer of this kind, with these fields.
pub fn list(kind: &str, fields: &[Vec<u8>]) -> Fault {
    let body = envelope("v1", kind, &fields.concat());
    answer(200, &[("content-type", MEDIA_TYPE)], body)
}

/// An error's stage and category.
pub fn words(error: &ProbeError) -> (&'static str, &'static str) {
    (error.stage.into_str(), error.cause.category())
}

/// Holds a probe to its budget, and its error to what must not be in it.
async fn checked<T>(
    budget: Duration,
    probe: impl Future<Output = Result<T, ProbeError>>,
) -> Result<T, ProbeError> {
    let result = tokio::time::timeout(budget + LEEWAY, probe)
        .await
        .expect("a probe ends within its budget");
    if let Err(error) = &result {
        let said = format!("{error} {error:?}");
        assert!(!said.contains(TOKEN), "a credential is in {said}");
    }
    result
}
