//! The runtime around an agent's work: client, metrics, health, Events, leader election. Both
//! agents have one.
//!
//! ```text
//! args --> AgentRuntime::open --> client, fence, events, registry, for the work
//!            |
//!            '--> run(checks, work): serve /metrics, /healthz, /readyz; campaign for the lead; end in order
//! ```

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
use crate::leader_election::{Elector, Fence, Role, campaign, identity, reference};
use crate::metrics::{self, Registry, RequestCounter};
use crate::status::{self, Status};
use crate::{http, seed_client};

/// Where controller-runtime serves metrics when the address is empty.
const DEFAULT_METRICS_ADDRESS: &str = ":8080";

pub struct AgentRuntime {
    pub agent: Agent,
    /// Of the seed.
    pub client: Client,
    /// Open while this process may write.
    pub fence: Fence,
    pub events: Events,
    /// What Events about the agent itself refer to: its Lease.
    pub self_reference: ObjectReference,
    pub registry: Registry,
    /// What part this process plays among its replicas.
    pub role: Role,
    /// Whether nothing is to be written: the work only says what it would write.
    pub dry_run: bool,
    /// None when it does not need the lead.
    elector: Option<Elector>,
    /// None when it writes nothing, not even Events.
    recorder: Option<Recorder>,
    metrics: Option<TcpListener>,
    health: Option<TcpListener>,
}

/// What `/healthz`, `/readyz` and `/statusz` show.
pub struct Endpoints<S> {
    /// What must hold for `/healthz`.
    pub live: Vec<Check>,
    /// What must hold for `/readyz`.
    pub ready: Vec<Check>,
    /// What else is answered beside them.
    pub lookups: Router,
    pub status: S,
}

impl AgentRuntime {
    /// Takes the addresses and finds the seed. `lease` is the Lease that replicas of this agent
    /// elect their leader by.
    ///
    /// # Errors
    /// When there is no access to the seed, or an address is taken.
    pub async fn open(agent: Agent, args: &AgentArgs, lease: &'static str) -> anyhow::Result<Self> {
        let mut registry = metrics::registry();
        let requests = RequestCounter::register(&mut registry);
        let kubeconfig =
            Some(args.kubeconfig.as_path()).filter(|path| !path.as_os_str().is_empty());
        let client = seed_client::connect(kubeconfig, &requests)
            .await
            .context("no access to the seed")?;
        let metrics_address =
            Some(args.metrics_bind_addr.as_str()).filter(|address| !address.is_empty());
        let metrics = http::listen(
            "metrics-bind-addr",
            metrics_address.unwrap_or(DEFAULT_METRICS_ADDRESS),
        )
        .await?;
        let health = match args.health_bind_addr.as_str() {
            "" => None,
            address => http::listen("health-bind-addr", address).await?,
        };
        if !matches!(args.pprof_bind_addr.as_str(), "" | "0") {
            tracing::info!(
                address = args.pprof_bind_addr,
                "--pprof-bind-addr is accepted, nothing is served there"
            );
        }
        let election = args.leader_election.clone();
        let self_reference = reference(&election.namespace, lease);
        let written =
            (!args.dry_run).then(|| Recorder::new(client.clone(), self_reference.clone()));
        let (events, recorder) = written.unzip();
        let events = events.unwrap_or_else(Events::none);
        events.register(&mut registry);
        let (fence, elector, role) = if args.dry_run {
            tracing::info!("dry run: nothing is written, no part is taken in leader election");
            (Fence::always_open(), None, Role::DryRun)
        } else if election.enabled {
            let (keeper, fence) = Fence::closed();
            register_leads(&mut registry, lease, fence.clone());
            let identity = identity();
            let elector = Elector::new(
                client.clone(),
                election,
                lease,
                identity.clone(),
                keeper,
                events.clone(),
            );
            let role = Role::Candidate {
                identity,
                holder: elector.holder(),
                fence: fence.clone(),
            };
            (fence, Some(elector), role)
        } else {
            (Fence::always_open(), None, Role::Alone)
        };
        Ok(Self {
            agent,
            client,
            fence,
            events,
            self_reference,
            registry,
            role,
            dry_run: args.dry_run,
            elector,
            recorder,
            metrics,
            health,
        })
    }

    /// Does the work, which ends by itself when the process is to end and writes only through the
    /// fence.
    ///
    /// # Errors
    /// When leadership is lost; the work is then dropped.
    pub async fn run<S: Status>(
        self,
        endpoints: Endpoints<impl Fn() -> S + Send + Sync + 'static>,
        work: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let ended = CancellationToken::new();
        let mut servers = JoinSet::new();
        let mut serve = |what: &str, listener: Option<TcpListener>, router: Router| {
            if let Some(listener) = listener {
                let address = listener
                    .local_addr()
                    .map(|address| address.to_string())
                    .unwrap_or_default();
                tracing::info!(address, "serving {what}");
                servers.spawn(http::serve(listener, router, ended.clone()));
            }
        };
        serve("metrics", self.metrics, metrics::router(self.registry));
        serve(
            "health",
            self.health,
            health::router(endpoints.live, endpoints.ready)
                .merge(endpoints.lookups)
                .merge(status::router(
                    self.agent.name(),
                    self.role,
                    endpoints.status,
                )),
        );
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
        servers.abort_all();
        while servers.join_next().await.is_some() {}
        Ok(result?)
    }
}

/// Whether this replica leads, under client-go's name and label.
fn register_leads(registry: &mut Registry, lease: &'static str, fence: Fence) {
    let of_lease = registry.sub_registry_with_label(("name".into(), lease.into()));
    let help = "Whether this process leads (1) or waits (0).";
    metrics::register_computed(of_lease, "leader_election_master_status", help, move || {
        Some(fence.is_open().into())
    });
}
