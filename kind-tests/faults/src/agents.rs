//! The agents: real processes, started as Gardener does, disturbed, and started again.

pub mod replica;
pub mod running;
pub mod vitals;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use testbed::agent::{AgentKind, AgentStart};

use self::replica::{AgentReplica, token};
use crate::pace::{ELECTION, WINDOW};
use crate::world::SoakWorld;

/// All replicas: two probers and a weeder.
pub struct Agents(pub Vec<Arc<AgentReplica>>);

/// Gardener's config of the prober with one more dependent, and with shorter times.
const PROBER: &str = "\
kubeConfigSecretName: shoot-access-dependency-watchdog-probe
probeInterval: 2s
initialDelay: 2s
probeTimeout: 2s
dependentResourceInfos:
- ref: {kind: Deployment, name: kube-controller-manager, apiVersion: apps/v1}
  scaleUp: {level: 0}
  scaleDown: {level: 1}
- ref: {kind: Deployment, name: machine-controller-manager, apiVersion: apps/v1}
  scaleUp: {level: 1, initialDelay: 1s}
  scaleDown: {level: 0}
- ref: {kind: Deployment, name: cluster-autoscaler, apiVersion: apps/v1}
  optional: true
  scaleUp: {level: 2}
  scaleDown: {level: 0}
- ref: {kind: Store, name: store, apiVersion: example.org/v1}
  scaleUp: {level: 2}
  scaleDown: {level: 0}
";

/// The prober's config with this interval.
pub fn prober_config(interval: &str) -> String {
    PROBER.replace("probeInterval: 2s", &format!("probeInterval: {interval}"))
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
        // Nobody asks tasks for pages but where a flag that comes later says where.
        let unserved = match binary {
            Some(_) => &[][..],
            None => &["--metrics-bind-addr=0", "--health-bind-addr=0"],
        };
        let replica = |(name, kind)| {
            let args = match kind {
                AgentKind::Prober => &["--kube-api-qps=50.0", "--kube-api-burst=200"][..],
                AgentKind::Weeder => &["--zap-log-level=INFO"],
            };
            let kubeconfig = world.seed.kubeconfig(&token(name));
            let start = AgentStart::new(kind, &folder, name, &kubeconfig, "")?;
            let replica = AgentReplica {
                name,
                start: AgentStart {
                    binary: binary.map(Path::to_owned),
                    ..start
                        .with(args.iter().copied())
                        .with(&election)
                        .with(unserved.iter().copied())
                },
                world: world.clone(),
                state: Mutex::default(),
            };
            world.seed.access().grant(&replica.token(), replica.user());
            Ok(Arc::new(replica))
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
