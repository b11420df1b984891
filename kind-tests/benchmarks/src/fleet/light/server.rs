//! The process that serves light shoots.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use testbed::api::protobuf::wire::{message, number, text, time};
use testbed::api::{MemoryApi, Options, full_size, protobuf};
use testbed::authority::Authority;

use super::{Counts, Opened, Order, Plan, Seen};
use crate::beside::obey;
use crate::course::{expiry, seconds};
use crate::fleet::TOKEN;
use crate::fleet::heart::Heart;

/// What is known of a shoot beside its server.
struct Shoot {
    heart: Mutex<Heart>,
    /// Requests for leases.
    probes: AtomicU64,
    /// When the prober's schedule wants the next one.
    due: Mutex<Option<DateTime<Utc>>>,
}

/// What all shoots share.
struct World {
    plan: Plan,
    /// Of each lease what does not change: its metadata, and the beginning of its spec.
    leases: Vec<(Bytes, Vec<u8>)>,
    nodes: Vec<Bytes>,
    shoots: Vec<Shoot>,
    late: Mutex<Vec<f64>>,
}

/// Serves until there are no more orders.
pub fn serve(plan: Plan) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let world = Arc::new(World::new(plan));
        let authority = Authority::new()?;
        let mut servers = Vec::with_capacity(world.shoots.len());
        for number in 0..world.shoots.len() {
            let options = Options { history: 1, requests_kept: 1, admin_token: TOKEN.into(), ..Options::default() };
            let server = MemoryApi::start(&authority, options).await?;
            let (leases, nodes) = (world.clone(), world.clone());
            server.computed().set("leases.coordination.k8s.io", move || leases.leases(&leases.shoots[number]));
            server.computed().set("nodes", move || nodes.nodes.clone());
            servers.push(server);
        }
        obey(|order| match order {
            Order::Open => {
                let ports = servers.iter().map(|server| server.address().port()).collect();
                Ok(json!(Opened { authority: authority.pem(), ports }))
            }
            Order::Outages(outages) => {
                world.shoots.iter().zip(outages).for_each(|(shoot, outage)| lock(&shoot.heart).outage = Some(outage));
                Ok(Value::Null)
            }
            Order::Look => Ok(json!(world.seen(&servers))),
        })
        .await
    })
}

impl World {
    fn new(plan: Plan) -> Self {
        let shoot = |number| Shoot { heart: Mutex::new(plan.heart(number)), probes: AtomicU64::new(0), due: Mutex::default() };
        let lease = |at: usize| {
            let metadata = json!({"metadata": full_size::lease(at)["metadata"]});
            (protobuf::lease(&metadata), [text(1, &full_size::node_name(at)), number(2, plan.grace.into())].concat())
        };
        Self {
            leases: (0..plan.nodes).map(lease).collect(),
            nodes: (0..plan.nodes).map(|at| protobuf::node(&full_size::node(at))).collect(),
            shoots: (0..plan.shoots).map(shoot).collect(),
            late: Mutex::default(),
            plan,
        }
    }

    fn seen(&self, servers: &[MemoryApi]) -> Seen {
        let probes: Vec<u64> = self.shoots.iter().map(|shoot| shoot.probes.load(Ordering::Relaxed)).collect();
        let sum = |of: fn(&MemoryApi) -> u64| servers.iter().map(of).sum();
        let counts = Counts {
            probes: probes.iter().sum(),
            requests: sum(|server| server.requests().total()),
            connections: sum(|server| server.connections().handshakes),
            bytes: sum(|server| server.requests().bytes()),
        };
        Seen { counts, probes, late: std::mem::take(&mut *lock(&self.late)) }
    }

    /// The leases of a shoot as they are now.
    fn leases(&self, shoot: &Shoot) -> Vec<Bytes> {
        let now = Utc::now();
        let renewed = lock(&shoot.heart).renewed(now);
        shoot.probes.fetch_add(1, Ordering::Relaxed);
        self.note_lateness(shoot, &renewed, now);
        let lease = |((metadata, spec), at): (&(Bytes, Vec<u8>), DateTime<Utc>)| {
            Bytes::from([metadata, message(2, &[spec.clone(), time(4, at)]).as_slice()].concat())
        };
        self.leases.iter().zip(renewed).map(lease).collect()
    }

    /// The prober looks again before the verdict can fall, and before a renewal could be doubted: three quarters of the grace
    /// period less a beat and a second after it last looked, or when two of the leases that it saw expire, whichever is earlier.
    fn note_lateness(&self, shoot: &Shoot, renewed: &[DateTime<Utc>], now: DateTime<Utc>) {
        let grace = self.plan.grace();
        let doubted = now + grace / 2 - TimeDelta::seconds(1);
        let next = expiry(renewed, 2, grace).map_or(doubted, |expired| expired.min(doubted));
        if let Some(due) = lock(&shoot.due).replace(next) {
            lock(&self.late).push(seconds(due, now));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
