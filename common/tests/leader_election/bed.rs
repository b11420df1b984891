//! A seed in memory and candidates that have Gardener's rights there and no more.

use std::sync::Arc;
use std::time::Duration;

use api_server::{
    Authority, Fault, FaultId, MemoryApi, Options, PATIENCE, Record, Rule, User, When,
};
use common::events::{Events, Recorder};
use common::flags::LeaderElection;
use common::leader_election::{Fence, LeaderElector, Lost, campaign, reference};
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::lossy_network::{GOOD, Link, LossyNetwork};

pub const GARDEN: &str = "garden";
pub const LEASE: &str = "dwd-prober-leader-election";
pub const LEASES: &str = "leases.coordination.k8s.io";
pub const TOKEN: &str = "prober";

/// The default times of the flags.
pub fn settings() -> LeaderElection {
    LeaderElection {
        enabled: true,
        namespace: GARDEN.into(),
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    }
}

pub async fn soon<T>(act: impl Future<Output = T>) -> T {
    let done = timeout(PATIENCE, act).await;
    done.expect("it does not take that long")
}

/// An API server that grants the rights of rule 83, and more.
pub async fn serve(mut rules: Vec<Rule>) -> Arc<MemoryApi> {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let authority = Authority::new().unwrap();
    let server = MemoryApi::start(&authority, Options::default());
    let lease = Rule::new("get,watch,update", LEASES).in_namespace(GARDEN);
    rules.extend([
        Rule::new("create", LEASES).in_namespace(GARDEN),
        lease.named(LEASE),
        Rule::new("create,get,update,patch", "events").in_namespace(GARDEN),
        // What every user who is known may do.
        Rule::new("create", "selfsubjectaccessreviews.authorization.k8s.io"),
    ]);
    let server = server.await.unwrap();
    server.access().grant(TOKEN, User::limited("prober", rules));
    Arc::new(server)
}

/// A seed behind a network that has no sockets.
pub struct ElectionBed {
    pub server: Arc<MemoryApi>,
    pub link: Link,
}

impl ElectionBed {
    /// With the rights of rule 83.
    pub async fn start() -> Self {
        Self::with(vec![]).await
    }

    /// With more rights.
    pub async fn with(rules: Vec<Rule>) -> Self {
        Self::behind(&LossyNetwork::new(serve(rules).await, 0, GOOD))
    }

    pub fn behind(network: &LossyNetwork) -> Self {
        Self {
            server: network.server.clone(),
            link: network.link("all"),
        }
    }

    fn client(&self) -> Client {
        self.link.client()
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
        let (elector, role) =
            LeaderElector::new(self.client(), settings, LEASE, identity.into(), events);
        (elector, role.write_fence())
    }

    /// Takes Events and writes them, about the Lease where they may not stand elsewhere.
    pub fn recorder(&self) -> (Events, Recorder) {
        Recorder::new(self.client(), reference(GARDEN, LEASE))
    }

    /// A replica whose work is to wait for its end.
    pub fn replica(&self, identity: &str, settings: LeaderElection) -> ElectionReplica {
        let (events, recorder) = self.recorder();
        let (elector, fence) = self.candidate_that_reports(identity, settings, events);
        let stop = CancellationToken::new();
        let task = tokio::spawn(recorder.beside(campaign(elector, stop.clone().cancelled_owned())));
        ElectionReplica { fence, stop, task }
    }

    /// A replica that leads.
    pub async fn leader(&self) -> ElectionReplica {
        let replica = self.replica("one", settings());
        replica.leads().await;
        replica
    }

    /// The spec of the Lease; null when there is none.
    pub fn lease(&self) -> Value {
        let lease = self.server.store().get(LEASES, GARDEN, LEASE);
        lease.map(|lease| lease["spec"].clone()).unwrap_or_default()
    }

    pub fn holder(&self) -> String {
        self.lease()["holderIdentity"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// A Lease as `other` left it, renewed so many times.
    pub fn hold(&self, seconds: u32, renewals: u32) {
        let renewed = format!("2026-01-01T00:00:00.{renewals:06}Z");
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": GARDEN, "name": LEASE},
            "spec": {"holderIdentity": "other", "leaseDurationSeconds": seconds, "renewTime": renewed, "acquireTime": renewed},
        });
        self.server.store().apply(lease).unwrap();
    }

    pub fn patch(&self, patch: Value) {
        self.server
            .store()
            .patch(LEASES, GARDEN, LEASE, &patch)
            .unwrap();
    }

    pub fn delete(&self) {
        self.server.store().delete(LEASES, GARDEN, LEASE).unwrap();
    }

    /// Requests for the Lease with this verb meet a fault.
    pub fn fails(&self, when: When, fault: &Fault) -> FaultId {
        self.server.faults().add(when, fault.clone())
    }

    /// Waits for more requests for the Lease with this verb.
    pub async fn asked(&self, verb: &str, more: usize) {
        let count = self.count(verb) + more;
        let is_it = |record: &&Record| record.verb == verb && record.resource == LEASES;
        let asked = self
            .server
            .requests()
            .wait_for(|records| (records.iter().filter(is_it).count() >= count).then_some(()));
        soon(asked).await;
    }

    pub fn count(&self, verb: &str) -> usize {
        let is_it = |record: &Record| record.verb == verb && record.resource == LEASES;
        self.server.requests().count(is_it)
    }

    /// Nothing was forbidden, and nothing but what the role names was asked.
    pub fn check(&self) {
        for record in self.server.requests().all() {
            assert!(!matches!(record.status, Some(401 | 403)), "{record:?}");
            let is_granted = matches!(&*record.verb, "create" | "get" | "watch" | "update");
            assert!(is_granted || record.resource != LEASES, "{record:?}");
        }
    }
}

pub struct ElectionReplica {
    pub fence: Fence,
    pub stop: CancellationToken,
    pub task: JoinHandle<Result<(), Lost>>,
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

    /// How it loses leadership.
    pub async fn loses(self) -> Lost {
        let lost = soon(self.task).await.unwrap().unwrap_err();
        assert!(!self.fence.is_open());
        lost
    }

    /// Ends it as SIGKILL does.
    pub async fn kill(self) {
        self.task.abort();
        assert!(soon(self.task).await.unwrap_err().is_cancelled());
    }
}
