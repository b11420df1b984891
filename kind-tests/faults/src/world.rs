//! The ground on which all happens: the seed, the shoots, and those who act in a real landscape and are not built here.
//!
//! The seed is in memory. That is what shows most: each of its writes is told to the oracle at the moment at which it is made, in
//! order and with the state before, and every fault can be made at any moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use testbed::Bed;
use testbed::api::{Authority, Fault, Kubelets, MemoryApi, Options, Record as Request, Seen, Source, When, gardener};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::disturbances::Disturbances;
use crate::fences::Fences;
use crate::ledger::{Kind, Ledger};
use crate::options::Options as Wishes;
use crate::record::{Arrival, Record};
use crate::rng::Rng;
use crate::shoot::real::Real;
use crate::shoot::{Api, CA, DEPLOYMENTS, KCM, MCM, Shoot};
use crate::weeder_oracle::WeederOracle;
use crate::writes::Dependent;

/// How long pods take to start or end.
const PODS: Duration = Duration::from_millis(300);

/// Everything.
pub struct World {
    pub ledger: Arc<Ledger>,
    pub disturbances: Arc<Disturbances>,
    pub seed: MemoryApi,
    pub shoots: Vec<Arc<Shoot>>,
    pub weeder_oracle: Arc<WeederOracle>,
    pub fences: Arc<Fences>,
    /// Whether the agents' configs can be read: no process is started while one cannot, since it would end at once, and rightly.
    pub configs_good: watch::Sender<bool>,
}

/// The shoots' records by namespace.
type Records = HashMap<String, Arc<Mutex<Record>>>;

impl World {
    /// Builds it, with everything at rest and no Cluster yet.
    pub async fn build(wishes: &Wishes, bed: &Bed) -> Result<Self> {
        let now = Instant::now();
        let (ledger, disturbances) = (Arc::new(Ledger::new(now)), Arc::new(Disturbances::new(now)));
        let authority = Authority::new()?;
        let seed = MemoryApi::start(&authority, Options { history: 4096, requests_kept: 2000, ..Options::default() }).await?;
        let mut rng = Rng::new(wishes.seed, "world");
        let mut shoots = Vec::new();
        for number in 0..wishes.shoots + usize::from(wishes.real) {
            let real = number == wishes.shoots;
            let namespace = if real { "shoot--soak--real".to_owned() } else { format!("shoot--soak--{number:03}") };
            let api = match real {
                true => Api::Real(Box::new(Real::start(bed).await.context("the real shoot")?)),
                false => {
                    let options = Options { history: 64, requests_kept: 64, ..Options::default() };
                    Api::Memory(MemoryApi::start(&authority, options).await?)
                }
            };
            let wanted = [(KCM, rng.number(1..=3)), (MCM, rng.number(1..=2)), (CA, 1)];
            shoots.push(Arc::new(Shoot::new(namespace, api, seed.store().clone(), wanted.into(), now)));
        }
        let weeder_oracle = Arc::new(WeederOracle::new(seed.store().clone(), shoots.iter().map(|shoot| shoot.namespace.clone())));
        let fences = Arc::new(Fences::default());
        let world = Self { ledger, disturbances, seed, shoots, weeder_oracle, fences, configs_good: watch::Sender::new(true) };
        world.observe();
        world.seed.store().create(gardener::namespace("garden"))?;
        for shoot in &world.shoots {
            let token = match &*shoot.api {
                Api::Memory(api) => {
                    let token = format!("soak-probe-token-{}", shoot.namespace);
                    api.access().grant(&token, gardener::shoot_probe());
                    token
                }
                Api::Real(real) => real.token().await?,
            };
            shoot.furnish(rng.number(2..=6) as usize, &token).await?;
        }
        world.weeder_oracle.furnish()?;
        Ok(world)
    }

    /// Lets the oracle see all that happens on the seed.
    fn observe(&self) {
        let records: Records = self.shoots.iter().map(|shoot| (shoot.namespace.clone(), shoot.record.clone())).collect();
        let (ledger, disturbances, weeder_oracle, fences) =
            (self.ledger.clone(), self.disturbances.clone(), self.weeder_oracle.clone(), self.fences.clone());
        let seen = records.clone();
        self.seed.store().observe(move |write| match write.resource.plural.as_str() {
            "deployments" => deployment(&seen, &ledger, &disturbances, write),
            "pods" => weeder_oracle.pod(write, &ledger, &disturbances),
            "leases" => fences.lease(write.after, write.source),
            _ => {}
        });
        let (ledger, disturbances, fences) = (self.ledger.clone(), self.disturbances.clone(), self.fences.clone());
        // A script line that no request meets, but that looks at all of them.
        let look = move |request: &Request| {
            let now = Instant::now();
            let reading = disturbances.read(now);
            fences.request(request, &ledger, reading, now);
            if request.is_write()
                && request.resource.starts_with("deployments.apps")
                && let Some(record) = records.get(&request.namespace)
            {
                let leaderless = fences.leaderless(&request.user, reading, now);
                if leaderless.is_some() {
                    ledger.count("writes to dependents that came from a prober without the lead");
                }
                let arrival = Arrival { at: now, name: request.name.clone(), leaderless };
                record.lock().unwrap_or_else(PoisonError::into_inner).arrived(arrival);
            }
            false
        };
        self.seed.faults().add(When::matches(look), Fault::Stall);
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

/// Takes in a change of a dependent, and judges it when the watchdog made it.
fn deployment(records: &Records, ledger: &Ledger, disturbances: &Disturbances, write: &Seen<'_>) {
    let text = |key: &str| write.after["metadata"][key].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let Some(record) = records.get(namespace) else { return };
    let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    if write.deleted {
        record.dependents.remove(name);
        return record.note(now, format!("{name} is deleted"));
    }
    let is = Dependent::of(write.after);
    match (write.source, write.before) {
        (Source::Client, before) => {
            ledger.count("writes");
            let reading = disturbances.read(now);
            if let Some((kind, told)) = record.written(name, before.unwrap_or(&Value::Null), write.after, reading, now) {
                let story = record.story(ledger.start);
                ledger.found(kind, namespace, told, story);
            }
        }
        (Source::Test, before) => {
            let was = before.map(Dependent::of).unwrap_or_default();
            if (was.replicas, &was.memory, was.marker, was.ignored) != (is.replicas, &is.memory, is.marker, is.ignored) {
                record.others_wrote(name, &was, &is, now);
            }
        }
    }
    record.dependents.insert(name.to_owned(), is);
}

/// Counts a request that was forbidden, unless a fault said so.
pub fn forbidden(ledger: &Ledger, place: &str, api: &MemoryApi, scripted: bool) {
    let refused: Vec<Request> = api.requests().all().into_iter().filter(|request| request.status == Some(403)).collect();
    if let Some(request) = refused.first().filter(|_| !scripted) {
        ledger.found(Kind::Forbidden, place, format!("{request:?}"), Vec::new());
    }
    api.requests().clear();
}
