//! The seed, the shoots, and stand-ins for those who act in a real landscape and are not built
//! here.
//!
//! The seed is in memory: the oracle observes each write at the moment at which it is made, in
//! order and with the state before, and every fault can be injected at any moment.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use api_server::{FaultId, MemoryApi, Options, Resource};
use http::Uri;
use http::uri::Authority;
use rand::RngExt;
use testbed::gardener;
use testbed::secrets::Credentials;
use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::oracle::Oracle;
use crate::shoot::{CA, KCM, MCM, STORE, SoakShoot};
use crate::story::actor::rng;
use crate::story::injected_fault;

/// Everything.
pub struct SoakWorld {
    pub oracle: Arc<Oracle>,
    pub seed: MemoryApi,
    pub shoots: Vec<Arc<SoakShoot>>,
    /// What the shoots' owner records say, if they can be resolved, and how often they were asked for.
    pub owner: watch::Sender<(Option<&'static str>, usize)>,
    /// What nobody may show.
    pub credentials: Credentials,
}

impl SoakWorld {
    /// Builds it, with everything idle.
    pub async fn build(seed: u64, count: u16, leeway: Duration) -> Result<Self> {
        let (now, mut rng) = (Instant::now(), rng(seed, "world"));
        let authority = api_server::Authority::new()?;
        let stores = Resource::custom("example.org/v1", "stores", "Store");
        let resources = [gardener::resources(), vec![stores]].concat();
        let server = |history, requests_kept| {
            let options = Options {
                history,
                requests_kept,
                resources: resources.clone(),
                ..Options::default()
            };
            MemoryApi::start(&authority, options)
        };
        let seed = server(4096, 100_000).await?;
        let mut shoots = Vec::new();
        for number in 0..count {
            let namespace = format!("shoot--soak--{number:03}");
            let (api, seed) = (server(64, 64).await?, seed.store().clone());
            shoots.push(Arc::new(SoakShoot::new(namespace, api, seed, now)));
        }
        let records = shoots.iter();
        let records = records.map(|shoot| (shoot.namespace.clone(), shoot.record.clone()));
        let oracle = Arc::new(Oracle::new(records.collect(), leeway, now));
        oracle.observe(&seed);
        seed.store().create(gardener::namespace("garden"))?;
        for shoot in &shoots {
            let (kcm, mcm) = (rng.random_range(1..=3), rng.random_range(1..=2));
            let wanted = [(KCM, kcm), (MCM, mcm), (CA, 1), (STORE, 4)];
            shoot.record().wanted = wanted
                .map(|(name, replicas)| (name.to_owned(), replicas))
                .into();
            shoot.furnish(rng.random_range(2..=6))?;
        }
        Ok(Self {
            oracle,
            seed,
            shoots,
            owner: watch::Sender::default(),
            credentials: Credentials::of(&["soak-probe-token"]),
        })
    }

    /// The seed's API server has this fault from now on. Of some requests its id.
    pub fn fail(&self, fault: &str) -> Result<Option<FaultId>> {
        self.oracle.disturbances().seed = None;
        injected_fault::begin(&self.seed, fault)
    }

    /// It answers as before, and all is as before after this time.
    pub fn end_faults(&self, recovery: Duration) {
        injected_fault::end(&self.seed);
        self.oracle.disturbances().seed = Some(Instant::now() + recovery);
    }

    /// Whether the seed has this address.
    pub fn is_seed(&self, address: &Uri) -> bool {
        is_at(&self.seed, address)
    }

    /// A connection to the API server in memory that has this address.
    pub fn dial(&self, address: &Uri) -> io::Result<DuplexStream> {
        let shoots = self.shoots.iter().map(|shoot| &*shoot.api);
        let mut servers = shoots.chain([&self.seed]);
        let server = servers.find(|api| is_at(api, address));
        server.ok_or(ErrorKind::ConnectionRefused)?.dial()
    }
}

fn is_at(api: &MemoryApi, address: &Uri) -> bool {
    let authority = address.authority().map(Authority::as_str);
    authority == Some(&*api.address().to_string())
}
