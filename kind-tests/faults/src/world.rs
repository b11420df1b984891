//! The ground on which all happens: the seed, the shoots, and those who act in a real landscape and
//! are not built here.
//!
//! The seed is in memory. That is what shows most: each of its writes is shown to the oracle at the
//! moment at which it is made, in order and with the state before, and every fault can be made at
//! any moment.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rand::RngExt;
use testbed::Bed;
use testbed::api::{MemoryApi, Options};
use testbed::authority::Authority;
use testbed::gardener;
use testbed::kubelets::Kubelets;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::options::SoakOptions;
use crate::oracle::Oracle;
use crate::shoot::real::Real;
use crate::shoot::{CA, DEPLOYMENTS, KCM, MCM, ShootApi, SoakShoot};
use crate::story::actor::rng;

/// How long pods take to start or end.
const PODS: Duration = Duration::from_millis(300);

/// Everything.
pub struct SoakWorld {
    pub oracle: Arc<Oracle>,
    pub seed: MemoryApi,
    pub shoots: Vec<Arc<SoakShoot>>,
    /// Whether the agents' configs can be read: no process is started while one cannot, since it
    /// would end at once, and rightly.
    pub configs_good: watch::Sender<bool>,
}

impl SoakWorld {
    /// Builds it, with everything idle and no Cluster yet.
    pub async fn build(wishes: &SoakOptions, bed: &Bed) -> Result<Self> {
        let (now, mut rng) = (Instant::now(), rng(wishes.seed, "world"));
        let authority = Authority::new()?;
        let seed = MemoryApi::start(
            &authority,
            Options {
                history: 4096,
                requests_kept: 2000,
                ..Options::default()
            },
        )
        .await?;
        let shoot = |name: &str, api| {
            Arc::new(SoakShoot::new(
                format!("shoot--soak--{name}"),
                api,
                seed.store().clone(),
                now,
            ))
        };
        let mut shoots = Vec::new();
        for number in 0..wishes.shoots {
            let options = Options {
                history: 64,
                requests_kept: 64,
                ..Options::default()
            };
            shoots.push(shoot(
                &format!("{number:03}"),
                ShootApi::Memory(MemoryApi::start(&authority, options).await?),
            ));
        }
        if wishes.real {
            shoots.push(shoot(
                "real",
                ShootApi::Real(Box::new(Real::start(bed).await.context("the real shoot")?)),
            ));
        }
        let records = shoots
            .iter()
            .map(|shoot| (shoot.namespace.clone(), shoot.record.clone()))
            .collect();
        let oracle = Arc::new(Oracle::new(records, now));
        oracle.observe(&seed);
        seed.store().create(gardener::namespace("garden"))?;
        for shoot in &shoots {
            shoot.record().wanted = [
                (KCM, rng.random_range(1..=3)),
                (MCM, rng.random_range(1..=2)),
                (CA, 1),
            ]
            .into();
            shoot.furnish(rng.random_range(2..=6)).await?;
        }
        Ok(Self {
            oracle,
            seed,
            shoots,
            configs_good: watch::Sender::new(true),
        })
    }

    /// The stand-ins for the seed's kubelets: ready replicas follow wanted ones, a moment later. A
    /// real kube-controller-manager runs while it has replicas.
    pub fn kubelets(&self) -> Kubelets {
        let shoots = self.shoots.clone();
        Kubelets::start_with(
            self.seed.store(),
            &[DEPLOYMENTS],
            PODS,
            move |namespace, name, replicas| {
                let shoot = shoots
                    .iter()
                    .find(|shoot| shoot.namespace == namespace && name == KCM);
                shoot
                    .into_iter()
                    .for_each(|shoot| shoot.manage(replicas > 0));
            },
        )
    }
}
