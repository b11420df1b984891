//! The agents: real processes, started as Gardener does, disturbed, and started again.

pub mod replica;
pub mod running;
pub mod vitals;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use api_server::Rule;
use parking_lot::Mutex;
use testbed::ProberConfig;
use testbed::agent::{AgentKind, AgentStart};
use testbed::gardener;
use testbed::prober::dependent;

use self::replica::AgentReplica;
use crate::pace::{ELECTION, WINDOW};
use crate::shoot::STORE;
use crate::world::SoakWorld;

/// All replicas: two probers and a weeder.
pub struct Agents(pub Vec<Arc<AgentReplica>>);

/// The prober's config with this interval.
pub fn prober_config(interval: &'static str) -> String {
    let gardeners = ProberConfig {
        interval,
        initial_delay: "2s",
        timeout: "2s",
        machine_delay: "1s",
        ..ProberConfig::default()
    };
    let store = dependent("example.org/v1", "Store", STORE, 2, 0);
    let (before, after) = (
        "kubeConfigSecretName",
        format!("- {store}\nkubeConfigSecretName"),
    );
    gardeners.text().replace(before, &after)
}

/// The weeder's config with this watchDuration.
pub fn weeder_config(window: Duration) -> String {
    AgentKind::Weeder.config().replace(
        "watchDuration: 5m0s",
        &format!("watchDuration: {}s", window.as_secs()),
    )
}

impl Agents {
    /// None runs yet. Without a binary they are tasks of this process.
    pub fn new(world: &Arc<SoakWorld>, binary: Option<&Path>) -> Result<Self> {
        let folder = testbed::reaper::folder("soak")?;
        let election = ["lease-duration", "renew-deadline", "retry-period"]
            .into_iter()
            .zip(ELECTION);
        let election: Vec<_> = election
            .map(|(name, time)| format!("--leader-elect-{name}={}s", time.as_secs()))
            .collect();
        let replica = |(name, kind)| {
            let (mut user, args) = match kind {
                AgentKind::Prober => (
                    gardener::seed_prober(),
                    &["--kube-api-qps=50.0", "--kube-api-burst=200"][..],
                ),
                AgentKind::Weeder => (gardener::seed_weeder(), &["--zap-log-level=INFO"][..]),
            };
            // The same rights under a name of its own, so that the log of requests tells replicas
            // apart.
            user.name = String::from(name);
            let stores = Rule::new(
                "get,list,watch,update,patch",
                "stores.example.org,stores.example.org/scale",
            );
            user.rules.get_or_insert_default().push(stores);
            let token = format!("soak-{name}-token");
            world.seed.access().grant(&token, user);
            let start = AgentStart::new(kind, &folder, name, &world.seed.kubeconfig(&token), "")?;
            let start = AgentStart {
                binary: binary.map(Path::to_owned),
                ..start
            }
            .with(args.iter().copied())
            .with(&election);
            Ok(Arc::new(AgentReplica {
                name,
                start,
                world: world.clone(),
                state: Mutex::default(),
            }))
        };
        let all = [
            ("prober-a", AgentKind::Prober),
            ("prober-b", AgentKind::Prober),
            ("weeder", AgentKind::Weeder),
        ];
        let new = Self(all.into_iter().map(replica).collect::<Result<_>>()?);
        new.configure_as_usual()?;
        Ok(new)
    }

    /// The replicas of one agent.
    pub fn of(&self, kind: AgentKind) -> impl Iterator<Item = &Arc<AgentReplica>> {
        self.0
            .iter()
            .filter(move |replica| replica.start.kind == kind)
    }

    /// Writes the config files of one agent.
    pub fn configure(&self, kind: AgentKind, text: &str) -> Result<()> {
        self.of(kind)
            .try_for_each(|replica| Ok(std::fs::write(&replica.start.config, text)?))
    }

    /// Writes all of them.
    pub fn configure_as_usual(&self) -> Result<()> {
        self.configure(AgentKind::Prober, &prober_config("2s"))?;
        self.configure(AgentKind::Weeder, &weeder_config(WINDOW))
    }
}
