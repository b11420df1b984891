//! A seed in memory and candidates that have Gardener's rights there and no more.

use std::sync::Arc;
use std::time::Duration;

use api_server::{Authority, MemoryApi, Options, PATIENCE, Record, Rule, User};
use common::events::{Events, Recorder};
use common::flags::LeaderElection;
use common::leader_election::{Fence, LeaderElector, campaign, reference};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::lossy_network::LossyNetwork;

pub const GARDEN: &str = "garden";
pub const LEASE: &str = "dwd-prober-leader-election";
pub const LEASES: &str = "leases.coordination.k8s.io";
pub const TOKEN: &str = "prober";

/// Short times, with room before the deadline, and between it and the end of the Lease, for a
/// machine that does much at once.
pub fn quick() -> LeaderElection {
    LeaderElection {
        enabled: true,
        namespace: GARDEN.into(),
        lease_duration: Duration::from_secs(5),
        renew_deadline: Duration::from_millis(2500),
        retry_period: Duration::from_millis(100),
    }
}

pub async fn soon<T>(act: impl Future<Output = T>) -> T {
    timeout(PATIENCE, act)
        .await
        .expect("it does not take that long")
}

/// An API server that grants the rights of rule 83, and more.
pub async fn serve(mut rules: Vec<Rule>) -> Arc<MemoryApi> {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let server = MemoryApi::start(&Authority::new().unwrap(), Options::default())
        .await
        .unwrap();
    rules.extend([
        Rule::new("create", LEASES).in_namespace(GARDEN),
        Rule::new("get,watch,update", LEASES)
            .in_namespace(GARDEN)
            .named(LEASE),
        Rule::new("create,get,update,patch", "events").in_namespace(GARDEN),
        // What every user who is known may do.
        Rule::new("create", "selfsubjectaccessreviews.authorization.k8s.io"),
    ]);
    server.access().grant(TOKEN, User::limited("prober", rules));
    Arc::new(server)
}

pub struct ElectionBed {
    pub server: Arc<MemoryApi>,
    pub client: Client,
}

impl ElectionBed {
    /// With the rights of rule 83.
    pub async fn start() -> Self {
        Self::with(vec![]).await
    }

    /// With more rights.
    pub async fn with(rules: Vec<Rule>) -> Self {
        let server = serve(rules).await;
        let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig(TOKEN)).unwrap();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .unwrap();
        config.default_retry = false;
        Self {
            server,
            client: Client::try_from(config).unwrap(),
        }
    }

    /// Behind a network that has no sockets.
    pub fn behind(network: &LossyNetwork) -> Self {
        Self {
            server: network.server.clone(),
            client: network.link("all").client(),
        }
    }

    /// A candidate that reports nothing.
    pub fn candidate(&self, identity: &str, settings: LeaderElection) -> (LeaderElector, Fence) {
        self.candidate_that_reports(identity, settings, Events::none())
    }

    fn candidate_that_reports(
        &self,
        identity: &str,
        settings: LeaderElection,
        events: Events,
    ) -> (LeaderElector, Fence) {
        let client = self.client.clone();
        let (elector, role) = LeaderElector::new(client, settings, LEASE, identity.into(), events);
        (elector, role.write_fence())
    }

    /// Takes Events and writes them, about the Lease where they may not stand elsewhere.
    pub fn recorder(&self) -> (Events, Recorder) {
        Recorder::new(self.client.clone(), reference(GARDEN, LEASE))
    }

    /// A replica whose work is to wait for its end.
    pub fn replica(&self, identity: &str, settings: LeaderElection) -> ElectionReplica {
        let (events, recorder) = self.recorder();
        let (elector, fence) = self.candidate_that_reports(identity, settings, events);
        let stop = CancellationToken::new();
        let task = tokio::spawn(recorder.beside(campaign(elector, stop.clone().cancelled_owned())));
        ElectionReplica { fence, stop, task }
    }

    /// The spec of the Lease; null when there is none.
    pub fn lease(&self) -> Value {
        self.server
            .store()
            .get(LEASES, GARDEN, LEASE)
            .map(|lease| lease["spec"].clone())
            .unwrap_or_default()
    }

    pub fn holder(&self) -> String {
        self.lease()["holderIdentity"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// A Lease as somebody else left it.
    pub fn hold(&self, holder: &str, seconds: u32, renewed: &str) {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": GARDEN, "name": LEASE},
            "spec": {
                "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 4,
                "renewTime": renewed, "acquireTime": renewed, "strategy": "not ours",
            },
        });
        self.server.store().apply(lease).unwrap();
    }

    pub fn delete(&self) {
        self.server.store().delete(LEASES, GARDEN, LEASE).unwrap();
    }

    /// Waits for a number of requests for the Lease with this verb.
    pub async fn asked(&self, verb: &str, count: usize) {
        let wanted = |record: &&Record| record.verb == verb && record.resource == LEASES;
        let enough = |records: &std::collections::VecDeque<Record>| {
            (records.iter().filter(wanted).count() >= count).then_some(())
        };
        soon(self.server.requests().wait_for(enough)).await;
    }

    pub fn count(&self, verb: &str) -> usize {
        self.server
            .requests()
            .count(|record| record.verb == verb && record.resource == LEASES)
    }

    /// Nothing was forbidden, and nothing but what the role names was asked.
    pub fn check(&self) {
        for record in self.server.requests().all() {
            assert!(!matches!(record.status, Some(401 | 403)), "{record:?}");
            if record.resource == LEASES {
                assert!(
                    matches!(record.verb.as_str(), "create" | "get" | "watch" | "update"),
                    "{record:?}"
                );
            }
        }
    }
}

pub struct ElectionReplica {
    pub fence: Fence,
    pub stop: CancellationToken,
    pub task: JoinHandle<Result<(), common::leader_election::Lost>>,
}

impl ElectionReplica {
    pub async fn leads(&self) {
        soon(self.fence.opened()).await;
    }

    /// Ends its work; true when all went well.
    pub async fn end(self) {
        self.stop.cancel();
        soon(self.task).await.unwrap().unwrap();
    }

    /// Ends it as SIGKILL does.
    pub async fn kill(self) {
        self.task.abort();
        assert!(soon(self.task).await.unwrap_err().is_cancelled());
    }
}
