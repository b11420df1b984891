//! The process that serves light shoots.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use testbed::api::protobuf::wire::{message, number, text, time};
use testbed::api::{MemoryApi, Options, full_size, protobuf};
use testbed::authority::Authority;
use tokio::io::{AsyncBufReadExt, BufReader};

use super::{FleetPlan, FleetStatus, TOKEN};
use crate::course::{expiry, seconds};
use crate::fleet::renewer::{NodeOutage, RenewalSchedule};

/// What is known of a shoot beside its server.
struct ServedShoot {
    renewer: RenewalSchedule,
    /// Requests for leases.
    probes: u64,
    /// When the prober's schedule wants the next one.
    due: Option<DateTime<Utc>>,
    /// See [`FleetStatus`].
    late: Vec<f64>,
}

/// Of a lease what does not change: its metadata, and the beginning of its spec.
struct LeaseTemplate(Bytes, Vec<u8>);

/// Serves until there are no more orders.
pub async fn serve(plan: FleetPlan) -> Result<()> {
    let authority = Authority::new()?;
    let leases: Arc<[LeaseTemplate]> = (0..plan.nodes)
        .map(|at| LeaseTemplate::of(at, plan.grace))
        .collect();
    let nodes: Arc<[Bytes]> = (0..plan.nodes)
        .map(|at| protobuf::node(&full_size::node(at)))
        .collect();
    let mut served = Vec::with_capacity(plan.shoots);
    for shoot in 0..plan.shoots {
        let options = Options {
            history: 1,
            requests_kept: 1,
            admin_token: TOKEN.into(),
            ..Options::default()
        };
        let server = MemoryApi::start(&authority, options).await?;
        let shoot = Arc::new(Mutex::new(ServedShoot {
            renewer: plan.renewer(shoot),
            probes: 0,
            due: None,
            late: Vec::new(),
        }));
        let (probed, leases, nodes, grace) =
            (shoot.clone(), leases.clone(), nodes.clone(), plan.grace());
        server
            .computed()
            .set("leases.coordination.k8s.io", move || {
                let renewed = probed
                    .lock()
                    .expect("no panic while locked")
                    .probed(Utc::now(), grace);
                leases
                    .iter()
                    .zip(renewed)
                    .map(|(lease, at)| lease.renewed(at))
                    .collect()
            });
        server.computed().set("nodes", move || nodes.to_vec());
        served.push((shoot, server));
    }
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    while let Some(order) = orders.next_line().await? {
        let outages: Vec<NodeOutage> = serde_json::from_str(&order)?;
        let mut seen = FleetStatus {
            authority: authority.pem(),
            ..FleetStatus::default()
        };
        for (number, (shoot, server)) in served.iter().enumerate() {
            let mut shoot = shoot.lock().expect("no panic while locked");
            shoot.renewer.outage = outages.get(number).copied();
            seen.ports.push(server.address().port());
            seen.counts.probes += shoot.probes;
            seen.counts.requests += server.requests().total();
            seen.counts.connections += server.connections().handshakes;
            seen.counts.bytes += server.requests().bytes();
            seen.probes.push(shoot.probes);
            seen.late.append(&mut shoot.late);
        }
        println!("{}", json!(seen));
    }
    Ok(())
}

impl ServedShoot {
    /// When its nodes have renewed, as whoever asks now is answered.
    ///
    /// The prober looks again before the verdict can fall, and before a renewal could be doubted:
    /// three quarters of the grace period less a beat and a second after it last looked, or when
    /// two of the leases that it saw expire, whichever is earlier.
    fn probed(&mut self, now: DateTime<Utc>, grace: TimeDelta) -> Vec<DateTime<Utc>> {
        let renewed = self.renewer.renewed(now);
        self.probes += 1;
        let doubted = now + grace / 2 - TimeDelta::seconds(1);
        let next = expiry(&renewed, 2, grace).map_or(doubted, |expired| expired.min(doubted));
        self.late
            .extend(self.due.replace(next).map(|due| seconds(due, now)));
        renewed
    }
}

impl LeaseTemplate {
    fn of(node: usize, grace: u32) -> Self {
        let metadata = json!({"metadata": full_size::lease(node)["metadata"]});
        Self(
            protobuf::lease(&metadata),
            [
                text(1, &full_size::node_name(node)),
                number(2, grace.into()),
            ]
            .concat(),
        )
    }

    fn renewed(&self, at: DateTime<Utc>) -> Bytes {
        let Self(metadata, spec) = self;
        Bytes::from(
            [
                metadata,
                message(2, &[spec.clone(), time(4, at)]).as_slice(),
            ]
            .concat(),
        )
    }
}
