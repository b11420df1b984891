//! The agents: real processes, started as Gardener does, disturbed, and started again.

pub mod replica;
pub mod running;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use parking_lot::Mutex;
use testbed::agent::{AgentKind, AgentStart};

use self::replica::{AgentReplica, token};
use crate::world::SoakWorld;

/// All replicas: two probers and a weeder.
pub struct Agents(pub Vec<Arc<AgentReplica>>);

/// Gardener's config of the prober with one more dependent, and with the times of [`crate::pace`].
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

/// The times of the election: [`crate::pace::RENEW_DEADLINE`], and what goes with it.
const ELECTION: [&str; 3] = [
    "--leader-elect-lease-duration=9s",
    "--leader-elect-renew-deadline=7s",
    "--leader-elect-retry-period=1s",
];

impl Agents {
    /// None runs yet. Without a binary they are tasks of this process.
    pub fn new(world: &Arc<SoakWorld>, binary: Option<&Path>) -> Result<Self> {
        let folder = testbed::reaper::folder("soak")?;
        let replica = |(name, kind)| {
            let (config, args) = match kind {
                AgentKind::Prober => (
                    PROBER.to_owned(),
                    &["--kube-api-qps=50.0", "--kube-api-burst=200"][..],
                ),
                AgentKind::Weeder => (
                    kind.config()
                        .replace("watchDuration: 5m0s", "watchDuration: 12s"),
                    &["--zap-log-level=INFO"][..],
                ),
            };
            let token = token(name);
            let kubeconfig = world.seed.kubeconfig(&token);
            let start = AgentStart::new(kind, &folder, name, &kubeconfig, &config)?;
            let replica = AgentReplica {
                name,
                start: AgentStart {
                    binary: binary.map(Path::to_owned),
                    ..start.with(args.iter().copied()).with(ELECTION)
                },
                world: world.clone(),
                state: Mutex::default(),
            };
            world.seed.access().grant(&token, replica.user());
            world.credentials.register(&token);
            Ok(Arc::new(replica))
        };
        let all = [
            ("prober-a", AgentKind::Prober),
            ("prober-b", AgentKind::Prober),
            ("weeder", AgentKind::Weeder),
        ];
        Ok(Self(all.into_iter().map(replica).collect::<Result<_>>()?))
    }

    /// Puts `new` in place of `old` in each config file that has it.
    pub fn configure(&self, old: &str, new: &str) -> Result<()> {
        let mut changed = 0;
        for replica in &self.0 {
            let text = std::fs::read_to_string(&replica.start.config)?;
            if text.contains(old) {
                std::fs::write(&replica.start.config, text.replace(old, new))?;
                changed += 1;
            }
        }
        ensure!(changed > 0, "no config has {old}");
        Ok(())
    }
}
