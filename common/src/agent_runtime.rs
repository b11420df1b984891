//! The runtime around an agent's work: client, metrics, health, Events, leader election.
//!
//! ```text
//! args --> AgentRuntime::open --> client, election, events, registry, for the work
//!            |
//!            '--> run(endpoints, shutdown, work): serve /metrics, /healthz, /readyz, /statusz; campaign for leadership; end in order
//! ```

use std::time::Duration;

use anyhow::Context;
use axum::Router;
use kube::Client;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::events::Events;
use crate::flags::{Agent, AgentArgs};
use crate::health::{self, Check};
use crate::http;
use crate::leader_election::{Election, LeaderElector, campaign, identity};
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
    pub registry: Registry,
    /// Part of this process among its replicas, and its right to write.
    pub election: Election,
    requests: RequestCounter,
    /// `None` without an election.
    elector: Option<LeaderElector>,
    /// Writes the Events; `None` if nothing is written, not even they.
    recorder: Option<AbortOnDropHandle<()>>,
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
        let (events, recorder) = if args.dry_run {
            tracing::info!("dry run: nothing is written, skipping leader election");
            (Events::none(), None)
        } else {
            let namespace = &args.leader_election.namespace;
            let (events, recorder) = Events::start(client.clone(), namespace, lease);
            (events, Some(recorder))
        };
        events.register(&mut registry);
        let (election, elector) = if args.dry_run {
            (Election::DryRun, None)
        } else if args.leader_election.enabled {
            let settings = args.leader_election.clone();
            let (elector, election) =
                LeaderElector::new(client.clone(), settings, lease, &identity(), events.clone());
            register_leads(&mut registry, lease, election.clone());
            (election, Some(elector))
        } else {
            (Election::Alone, None)
        };
        Ok(Self {
            agent,
            client,
            events,
            registry,
            election,
            requests,
            elector,
            recorder,
            metrics,
            health,
        })
    }

    /// Does the work, which ends by itself after `shutdown` and writes only as its part in the
    /// election lets it. The servers end with the shutdown or the work.
    ///
    /// # Errors
    /// When leadership is lost; the work is then dropped.
    pub async fn run<S: Status>(
        self,
        mut endpoints: Endpoints<impl Fn() -> S + Send + Sync + 'static>,
        shutdown: &CancellationToken,
        work: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        endpoints.ready.push(requests_succeed(self.requests));
        let health = health::router(endpoints.live, endpoints.ready)
            .merge(endpoints.lookups)
            .merge(status::router(
                self.agent.name(),
                self.election,
                endpoints.status,
            ));
        let ended = shutdown.child_token();
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
        // Events are written until the process ends.
        let _recorder = self.recorder;
        let result = match self.elector {
            Some(elector) => campaign(elector, work).await,
            None => {
                work.await;
                Ok(())
            }
        };
        ended.cancel();
        while servers.join_next().await.is_some() {}
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
fn register_leads(registry: &mut Registry, lease: &'static str, election: Election) {
    let of_lease = registry.sub_registry_with_label(("name".into(), lease.into()));
    let help = "Whether this process leads (1) or waits (0).";
    let name = "leader_election_master_status";
    metrics::register_condition(of_lease, name, help, move || election.leads());
}
