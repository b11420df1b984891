//! The runtime around an agent's work: client, metrics, health, Events, leader election.
//!
//! ```text
//! args --> AgentRuntime::open --> client, role, events, registry, for the work
//!            |
//!            '--> run(endpoints, work): serve /metrics, /healthz, /readyz, /statusz; campaign for leadership; end in order
//! ```

use std::time::Duration;

use anyhow::Context;
use axum::Router;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::events::{Events, Recorder};
use crate::flags::{Agent, AgentArgs};
use crate::health::{self, Check};
use crate::http;
use crate::leader_election::{LeaderElector, Role, campaign, identity, reference};
use crate::metrics::{self, Registry, RequestCounter};
use crate::seed_client::{self, KubeconfigChoice};
use crate::status::{self, Status};
use crate::transport::Dialer;

/// Controller-runtime's address for metrics if the flag is empty.
const DEFAULT_METRICS_ADDRESS: &str = ":8080";

/// Time without a successful request to the seed after which this process is not ready: as long as
/// what was seen of the seed counts as known, so that an outage of the seed makes it so once.
const MAX_FAILING: Duration = Duration::from_secs(60);

pub struct AgentRuntime {
    pub agent: Agent,
    /// Client of the seed.
    pub client: Client,
    pub events: Events,
    /// The agent's Lease, for Events about the agent.
    pub self_reference: ObjectReference,
    pub registry: Registry,
    /// Part of this process among its replicas, and its right to write.
    pub role: Role,
    requests: RequestCounter,
    /// `None` without an election.
    elector: Option<LeaderElector>,
    /// `None` if nothing is written, not even Events.
    recorder: Option<Recorder>,
    metrics: Option<TcpListener>,
    health: Option<TcpListener>,
}

/// Contents of `/healthz`, `/readyz` and `/statusz`.
pub struct Endpoints<S> {
    /// Checks of `/healthz`.
    pub live: Vec<Check>,
    /// Checks of `/readyz`.
    pub ready: Vec<Check>,
    /// Routes served beside them.
    pub lookups: Router,
    pub status: S,
}

impl AgentRuntime {
    /// Binds the addresses and connects to the seed. `lease` is the Lease that replicas of this
    /// agent elect their leader by.
    ///
    /// # Errors
    /// When there is no access to the seed, or an address is taken.
    pub async fn open(
        agent: Agent,
        args: &AgentArgs,
        lease: &'static str,
        dialer: Dialer,
    ) -> anyhow::Result<Self> {
        let mut registry = metrics::registry();
        let requests = RequestCounter::register(&mut registry);
        let choice = KubeconfigChoice::path(args.kubeconfig.as_deref());
        let client = seed_client::connect(dialer, choice, &requests)
            .await
            .context("no access to the seed")?;
        let metrics_address = match &*args.metrics_bind_addr {
            "" => DEFAULT_METRICS_ADDRESS,
            given => given,
        };
        let metrics = http::listen("metrics-bind-addr", metrics_address).await?;
        let health = http::listen("health-bind-addr", &args.health_bind_addr).await?;
        if !matches!(args.pprof_bind_addr.as_str(), "" | "0") {
            tracing::info!(
                address = args.pprof_bind_addr,
                "--pprof-bind-addr is accepted, nothing is served there"
            );
        }
        if args.metrics_per_shoot {
            tracing::info!("--metrics-per-shoot is accepted, without effect");
        }
        let self_reference = reference(&args.leader_election.namespace, lease);
        let (events, recorder) = if args.dry_run {
            tracing::info!("dry run: nothing is written, skipping leader election");
            (Events::none(), None)
        } else {
            let (events, recorder) = Recorder::new(client.clone(), self_reference.clone());
            (events, Some(recorder))
        };
        events.register(&mut registry);
        let mut elector = None;
        let role = if args.dry_run {
            Role::DryRun
        } else if args.leader_election.enabled {
            let settings = args.leader_election.clone();
            let (candidate, role) =
                LeaderElector::new(client.clone(), settings, lease, identity(), events.clone());
            elector = Some(candidate);
            register_leads(&mut registry, lease, role.clone());
            role
        } else {
            Role::Alone
        };
        Ok(Self {
            agent,
            client,
            events,
            self_reference,
            registry,
            role,
            requests,
            elector,
            recorder,
            metrics,
            health,
        })
    }

    /// Does the work, which ends by itself when the process is to end and writes only through the
    /// fence of its role.
    ///
    /// # Errors
    /// When leadership is lost; the work is then dropped.
    pub async fn run<S: Status>(
        self,
        mut endpoints: Endpoints<impl Fn() -> S + Send + Sync + 'static>,
        work: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        endpoints.ready.push(requests_succeed(self.requests));
        let health = health::router(endpoints.live, endpoints.ready)
            .merge(endpoints.lookups)
            .merge(status::router(
                self.agent.name(),
                self.role,
                endpoints.status,
            ));
        let ended = CancellationToken::new();
        let mut servers = JoinSet::new();
        for (what, listener, router) in [
            ("metrics", self.metrics, metrics::router(self.registry)),
            ("health", self.health, health),
        ] {
            if let Some(listener) = listener {
                let address = listener.local_addr().map(|address| address.to_string());
                tracing::info!(address = address.unwrap_or_default(), "serving {what}");
                servers.spawn(http::serve(listener, router, ended.clone()));
            }
        }
        let work = async {
            match self.elector {
                Some(elector) => campaign(elector, work).await,
                None => {
                    work.await;
                    Ok(())
                }
            }
        };
        let result = match self.recorder {
            Some(recorder) => recorder.beside(work).await,
            None => work.await,
        };
        ended.cancel();
        // A client that keeps its connection busy must not keep the process.
        servers.shutdown().await;
        Ok(result?)
    }
}

/// Passes unless all requests to the seed have failed for [`MAX_FAILING`]: a client that cannot be
/// used any more is seen so while its watches are still open.
fn requests_succeed(requests: RequestCounter) -> Check {
    Check::new("requests", move || {
        let failing = requests.failing_for();
        if failing < MAX_FAILING {
            return Ok(());
        }
        let seconds = failing.as_secs();
        Err(format!(
            "no request to the seed has succeeded for {seconds} s"
        ))
    })
}

/// Registers leadership under client-go's name and label.
fn register_leads(registry: &mut Registry, lease: &'static str, role: Role) {
    let of_lease = registry.sub_registry_with_label(("name".into(), lease.into()));
    let help = "Whether this process leads (1) or waits (0).";
    metrics::register_computed(of_lease, "leader_election_master_status", help, move || {
        Some(role.leads().into())
    });
}
