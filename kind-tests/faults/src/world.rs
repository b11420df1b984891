//! The ground on which all happens: the seed, the shoots, and those who act in a real landscape and are not built here.
//!
//! The seed is in memory. That is what shows most: each of its writes is told to the oracle at the moment at which it is made, in
//! order and with the state before, and every fault can be made at any moment.

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

use crate::options::Options as Wishes;
use crate::oracle::Oracle;
use crate::shoot::real::Real;
use crate::shoot::{Api, CA, DEPLOYMENTS, KCM, MCM, Shoot};
use crate::story::actor::rng;

/// How long pods take to start or end.
const PODS: Duration = Duration::from_millis(300);

/// Everything.
pub struct World {
    pub oracle: Arc<Oracle>,
    pub seed: MemoryApi,
    pub shoots: Vec<Arc<Shoot>>,
    /// Whether the agents' configs can be read: no process is started while one cannot, since it would end at once, and rightly.
    pub configs_good: watch::Sender<bool>,
}

impl World {
    /// Builds it, with everything idle and no Cluster yet.
    pub async fn build(wishes: &Wishes, bed: &Bed) -> Result<Self> {
        let (now, mut rng) = (Instant::now(), rng(wishes.seed, "world"));
        let authority = Authority::new()?;
        let seed = MemoryApi::start(&authority, Options { history: 4096, requests_kept: 2000, ..Options::default() }).await?;
        let mut apis = Vec::new();
        for number in 0..wishes.shoots {
            let options = Options { history: 64, requests_kept: 64, ..Options::default() };
            apis.push((format!("shoot--soak--{number:03}"), Api::Memory(MemoryApi::start(&authority, options).await?)));
        }
        if wishes.real {
            let real = Real::start(bed).await.context("the real shoot")?;
            apis.push(("shoot--soak--real".to_owned(), Api::Real(Box::new(real))));
        }
        let shoot = |(namespace, api)| {
            let wanted = [(KCM, rng.random_range(1..=3)), (MCM, rng.random_range(1..=2)), (CA, 1)];
            Arc::new(Shoot::new(namespace, api, seed.store().clone(), wanted.into(), now))
        };
        let shoots: Vec<Arc<Shoot>> = apis.into_iter().map(shoot).collect();
        let records = shoots.iter().map(|shoot| (shoot.namespace.clone(), shoot.record.clone())).collect();
        let oracle = Arc::new(Oracle::new(seed.store().clone(), records, now));
        oracle.observe(&seed);
        seed.store().create(gardener::namespace("garden"))?;
        for shoot in &shoots {
            let token = match &*shoot.api {
                Api::Memory(api) => {
                    let token = format!("soak-probe-token-{}", shoot.namespace);
                    api.access().grant(&token, gardener::shoot_probe());
                    token
                }
                Api::Real(real) => real.token().await?,
            };
            shoot.furnish(rng.random_range(2..=6), &token).await?;
        }
        oracle.weeder.furnish()?;
        Ok(Self { oracle, seed, shoots, configs_good: watch::Sender::new(true) })
    }

    /// The stand-ins for the seed's kubelets: ready replicas follow wanted ones, a moment later. The real kube-controller-manager runs
    /// while it has replicas.
    pub fn kubelets(&self) -> Kubelets {
        let real = self.shoots.iter().find(|shoot| shoot.is_real()).cloned();
        Kubelets::start_with(self.seed.store(), &[DEPLOYMENTS], PODS, move |namespace, name, replicas| {
            if let Some(shoot) = real.as_ref().filter(|shoot| shoot.namespace == namespace && name == KCM)
                && let Api::Real(real) = &*shoot.api
                && let Err(error) = real.manage(replicas > 0)
            {
                shoot.note(format!("kube-controller-manager: {error:#}"));
            }
        })
    }
}
