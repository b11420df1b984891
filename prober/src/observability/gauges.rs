//! The gauges: sums over the views of all shoots, so that their number does not grow with that of the
//! shoots.

use std::fmt;

use prober_core::verdict::Verdict;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use strum::VariantNames;

use super::shoot_statuses::ShootStatuses;
use super::view::Found;
use crate::owner::Standing;

/// In the place of a verdict, for a shoot whose last probe was not complete.
const UNKNOWN: &str = "unknown";

/// A number for each combination of the values of so many labels.
type Sums<'a, const N: usize> = Family<[(&'static str, &'a str); N], Gauge>;

/// Adding 0 shows a series from the beginning, so that an alert on it can be seen to watch something.
fn add<'a, const N: usize>(sums: &Sums<'a, N>, labels: [(&'static str, &'a str); N], count: usize) {
    sums.get_or_create(&labels).inc_by(count as i64);
}

impl Collector for ShootStatuses {
    #[rustfmt::skip]
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let (now, shoots) = (self.clock.now(), self.shoots.lock());
        let shoots: Vec<_> = shoots.values().map(|view| view.lock()).collect();
        let found = || shoots.iter().filter_map(|shoot| shoot.found());
        let states = Sums::default();
        let verdicts = Sums::default();
        let held_shoots = Sums::default();
        for verdict in Verdict::WORDS.iter().chain([&UNKNOWN]) {
            add(&held_shoots, [("verdict", verdict)], 0);
        }
        let (held, held_seconds, refused) = (Sums::default(), Sums::default(), Sums::default());
        for shoot in &shoots {
            add(&states, [("state", &*shoot.state)], 1);
            let verdict = [("verdict", shoot.verdict().map_or(UNKNOWN, <&str>::from))];
            if shoot.probe.is_some() {
                add(&verdicts, verdict, 1);
            }
            // What belongs to another seed is not protected here, whatever its resources carry.
            let is_ours = shoot.decree.is_none();
            let is_held = is_ours && shoot.dependents.iter().any(|one| one.since.is_some());
            add(&held_shoots, verdict, usize::from(is_held));
            for dependent in &shoot.dependents {
                let resource = [("kind", &*dependent.resource.kind), ("name", &*dependent.resource.name)];
                if let Some(since) = dependent.since.filter(|_| is_ours) {
                    add(&held, resource, 1);
                    let longest = held_seconds.get_or_create(&resource);
                    longest.set(longest.get().max((self.clock.wall(now) - since).num_seconds()));
                }
                if dependent.refused.is_some() {
                    add(&refused, resource, 1);
                }
            }
        }
        let leases = Sums::default();
        let count = |state, of: fn(&Found) -> usize| add(&leases, [("state", state)], found().map(of).sum());
        count("candidate", |found| found.tally.candidates);
        count("expired", |found| found.tally.expired);
        count("undecided", |found| found.tally.undecided);
        count("skewed", |found| found.skewed);
        let excluded = Sums::default();
        for (reason, count) in found().flat_map(|found| &found.excluded) {
            add(&excluded, [("reason", &**reason)], *count);
        }
        let owners = Sums::default();
        for standing in Standing::VARIANTS {
            add(&owners, [("standing", standing)], 0);
        }
        for owner in shoots.iter().filter_map(|shoot| shoot.owner.as_ref()) {
            add(&owners, [("standing", owner.standing.into_str())], 1);
        }
        let complete = shoots.iter().filter_map(|shoot| Some(shoot.probe.as_ref()?.complete)).min();
        let oldest = complete.map_or(0, |complete| (now - complete).num_seconds().max(0));
        let paused = shoots.iter().filter(|shoot| shoot.is_paused).count();
        let short = found().filter(|found| found.grace_too_short).count();
        let mut show = |name, help, sums: &dyn EncodeMetric| sums.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?);
        show("dwd_shoots", "Shoots of the seed by what their Clusters say.", &states)?;
        show("dwd_leases", "Leases of the last complete probes of all shoots.", &leases)?;
        show("dwd_excluded_nodes", "Nodes or leases that did not count, by reason.", &excluded)?;
        show("dwd_verdicts", "Probed shoots by what their last probes concluded.", &verdicts)?;
        show("dwd_held_down_shoots", "Shoots in which anything is held down, by what their last probes concluded.", &held_shoots)?;
        show("dwd_held_down", "Shoots in which a resource is held down.", &held)?;
        show("dwd_held_down_seconds", "For how long a resource has been held down, the longest.", &held_seconds)?;
        show("dwd_protection_refused", "Shoots in which a resource could not be scaled down in an outage, as its rehearsal has shown.", &refused)?;
        show("dwd_owner_shoots", "Shoots by what their owner records say.", &owners)?;
        show("dwd_oldest_complete_probe_seconds", "Time since the last complete probe, the longest.", &ConstGauge::new(oldest))?;
        show("dwd_paused_shoots", "Shoots for which nothing is written, as their operators want it.", &ConstGauge::new(paused as i64))?;
        show("dwd_short_grace_shoots", "Shoots whose grace is too short for the renewals of their nodes, so that protection may come too late.", &ConstGauge::new(short as i64))
    }
}
