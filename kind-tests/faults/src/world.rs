//! The seed, the shoots, and stand-ins for those who act in a real landscape and are not built
//! here.
//!
//! The seed is in memory: the oracle observes each write at the moment at which it is made, in
//! order and with the state before, and every fault can be injected at any moment.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use api_server::{MemoryApi, Options, Resource};
use http::Uri;
use http::uri::Authority;
use rand::RngExt;
use testbed::Testbed;
use testbed::gardener;
use testbed::kubelets::Kubelets;
use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::options::SoakOptions;
use crate::oracle::Oracle;
use crate::shoot::real::Real;
use crate::shoot::{CA, DEPLOYMENTS, KCM, MCM, STORE, STORES, ShootApi, SoakShoot};
use crate::story::actor::rng;

/// How long pods take to start or end.
const PODS: Duration = Duration::from_millis(300);

fn resources() -> Vec<Resource> {
    let stores = Resource::custom("example.org/v1", "stores", "Store").with_status();
    [gardener::resources(), vec![stores.with_scale()]].concat()
}

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
    /// Builds it, with everything idle and no Cluster yet; with a testbed also a real shoot, if it is
    /// wanted.
    pub async fn build(options: &SoakOptions, bed: Option<&Testbed>) -> Result<Self> {
        let (now, mut rng) = (Instant::now(), rng(options.seed, "world"));
        let authority = api_server::Authority::new()?;
        let server = |history, requests_kept| {
            let options = Options {
                history,
                requests_kept,
                resources: resources(),
                ..Options::default()
            };
            MemoryApi::start(&authority, options)
        };
        let seed = server(4096, 2000).await?;
        let mut apis = Vec::new();
        for number in 0..options.shoots {
            let api = ShootApi::Memory(server(64, 64).await?);
            apis.push((format!("{number:03}"), api));
        }
        if let Some(bed) = bed.filter(|_| options.real) {
            let real = Real::start(bed).await.context("the real shoot")?;
            apis.push(("real".to_owned(), ShootApi::Real(Box::new(real))));
        }
        let shoots = apis.into_iter().map(|(name, api)| {
            let namespace = format!("shoot--soak--{name}");
            Arc::new(SoakShoot::new(namespace, api, seed.store().clone(), now))
        });
        let shoots: Vec<_> = shoots.collect();
        let records = shoots.iter();
        let records = records.map(|shoot| (shoot.namespace.clone(), shoot.record.clone()));
        let oracle = Arc::new(Oracle::new(records.collect(), now));
        oracle.observe(&seed);
        seed.store().create(gardener::namespace("garden"))?;
        for shoot in &shoots {
            let (kcm, mcm) = (rng.random_range(1..=3), rng.random_range(1..=2));
            shoot.record().wanted = [(KCM, kcm), (MCM, mcm), (CA, 1), (STORE, 4)].into();
            shoot.furnish(rng.random_range(2..=6)).await?;
        }
        Ok(Self {
            oracle,
            seed,
            shoots,
            configs_good: watch::Sender::new(true),
        })
    }

    /// Whether the seed has this address.
    pub fn is_seed(&self, address: &Uri) -> bool {
        let authority = address.authority().map(Authority::as_str);
        Some(&*self.seed.address().to_string()) == authority
    }

    /// A connection to the API server in memory that has this address.
    pub fn dial(&self, address: &Uri) -> io::Result<DuplexStream> {
        let shoots = self.shoots.iter().filter_map(|shoot| match &*shoot.api {
            ShootApi::Memory(api) => Some(api),
            ShootApi::Real(_) => None,
        });
        let mut servers = shoots.chain([&self.seed]);
        let authority = address.authority().map(Authority::as_str);
        let server = servers.find(|api| Some(&*api.address().to_string()) == authority);
        server.ok_or(ErrorKind::ConnectionRefused)?.dial()
    }

    /// The stand-ins for the seed's kubelets: ready replicas follow wanted ones, a moment later. A
    /// real kube-controller-manager runs while it has replicas.
    pub fn kubelets(&self) -> Kubelets {
        let shoots = self.shoots.clone();
        let follow = move |namespace: &str, name: &str, replicas| {
            let shoot = shoots.iter().find(|shoot| shoot.namespace == namespace);
            if let Some(shoot) = shoot.filter(|_| name == KCM) {
                shoot.run_controllers(replicas > 0);
            }
        };
        Kubelets::start_with(self.seed.store(), &[DEPLOYMENTS, STORES], PODS, follow)
    }
}
