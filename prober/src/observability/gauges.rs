//! The gauges: sums over the views of all shoots, so that their number does not grow with that of the
//! shoots.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Add;

use prober_core::verdict::Verdict;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use strum::VariantNames;

use super::in_seconds;
use super::shoot_statuses::ShootStatuses;
use super::view::{Found, ShootView};
use crate::owner::Standing;

/// In the place of a verdict, for a shoot whose last probe was not complete.
const UNKNOWN: &str = "unknown";

/// Writes gauges, one after the other.
struct Gauges<'a>(DescriptorEncoder<'a>);

impl Gauges<'_> {
    fn single(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let kind = MetricType::Gauge;
        let metric = self.0.encode_descriptor(name, help, None, kind)?;
        ConstGauge::new(value).encode(metric)
    }

    /// Combines the values with the same labels.
    fn combined<'a, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: [&str; N],
        combine: fn(f64, f64) -> f64,
        values: impl IntoIterator<Item = ([&'a str; N], f64)>,
    ) -> fmt::Result {
        let mut all: BTreeMap<[&str; N], f64> = BTreeMap::new();
        for (labels, value) in values {
            let known = all.entry(labels).or_default();
            *known = combine(*known, value);
        }
        let kind = MetricType::Gauge;
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        for (values, value) in all {
            let labels: [_; N] = std::array::from_fn(|at| (labels[at], values[at]));
            ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// Adds the counts of each value of a label.
    fn sums<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        counts: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> fmt::Result {
        let counts = counts.into_iter();
        let counts = counts.map(|(value, count)| ([value], count as f64));
        self.combined(name, help, [label], Add::add, counts)
    }
}

impl Collector for ShootStatuses {
    #[rustfmt::skip]
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let (now, table) = (self.clock.now(), self.table.lock());
        let wall = self.clock.wall(now);
        let shoots = || table.shoots.values();
        let found = || shoots().filter_map(ShootView::found);
        let probes = || shoots().filter_map(|shoot| shoot.probe.as_ref());
        let oldest = probes().map(|probe| now - probe.complete).max();
        // What belongs to another seed is not protected here, whatever its resources carry.
        let is_ours = |shoot: &&ShootView| {
            let owner = shoot.owner.as_ref();
            owner.is_none_or(|owner| owner.standing != Standing::Elsewhere)
        };
        let is_held = |shoot: &&ShootView| shoot.dependents.iter().any(|dependent| dependent.since.is_some());
        let held_shoots = || shoots().filter(is_held).filter(is_ours);
        let held = || held_shoots().flat_map(|shoot| &shoot.dependents).filter_map(|dependent| {
            let (resource, age) = (&dependent.resource, wall - dependent.since?);
            Some(([&*resource.kind, &*resource.name], age))
        });
        let mut gauges = Gauges(encoder);
        gauges.sums("dwd_shoots", "Shoots of the seed by what their Clusters say.", "state",
            shoots().map(|shoot| (&*shoot.state, 1)))?;
        gauges.sums("dwd_leases", "Leases of the last complete probes of all shoots.", "state",
            none_of(&["candidate", "expired", "undecided", "skewed"]).chain(found().flat_map(leases)))?;
        gauges.sums("dwd_excluded_nodes", "Nodes or leases that did not count, by reason.", "reason",
            found().flat_map(|found| &found.excluded).map(|(reason, count)| (&**reason, *count)))?;
        gauges.sums("dwd_verdicts", "Probed shoots by what their last probes concluded.", "verdict",
            shoots().filter(|shoot| shoot.probe.is_some()).map(verdict))?;
        gauges.sums("dwd_held_down_shoots", "Shoots in which anything is held down, by what their last probes concluded.", "verdict",
            none_of(Verdict::WORDS).chain([(UNKNOWN, 0)]).chain(held_shoots().map(verdict)))?;
        gauges.combined("dwd_held_down", "Shoots in which a resource is held down.", ["kind", "name"], Add::add,
            held().map(|(resource, _)| (resource, 1.0)))?;
        gauges.combined("dwd_held_down_seconds", "For how long a resource has been held down, the longest.", ["kind", "name"], f64::max,
            held().map(|(resource, age)| (resource, in_seconds(age))))?;
        gauges.combined("dwd_protection_refused", "Shoots in which a resource could not be scaled down in an outage, as its rehearsal has shown.", ["kind", "name"], Add::add,
            shoots().flat_map(|shoot| &shoot.dependents).filter(|dependent| dependent.refused.is_some())
                .map(|dependent| ([&*dependent.resource.kind, &*dependent.resource.name], 1.0)))?;
        gauges.sums("dwd_owner_shoots", "Shoots by what their owner records say.", "standing",
            none_of(Standing::VARIANTS).chain(shoots().filter_map(|shoot| shoot.owner.as_ref()).map(|owner| (owner.standing.into_str(), 1))))?;
        gauges.single("dwd_oldest_complete_probe_seconds", "Time since the last complete probe, the longest.",
            oldest.map_or(0.0, in_seconds).max(0.0))?;
        gauges.single("dwd_paused_shoots", "Shoots for which nothing is written, as their operators want it.",
            shoots().filter(|shoot| shoot.paused == Some(true)).count() as f64)?;
        gauges.single("dwd_short_grace_shoots", "Shoots whose grace is too short for the renewals of their nodes, so that protection may come too late.",
            found().filter(|found| found.grace_too_short).count() as f64)
    }
}

fn verdict(shoot: &ShootView) -> (&'static str, usize) {
    let verdict = shoot.verdict();
    (verdict.map_or(UNKNOWN, |verdict| verdict.into_str()), 1)
}

fn leases(found: &Found) -> [(&'static str, usize); 4] {
    [
        ("candidate", found.candidates),
        ("expired", found.expired),
        ("undecided", found.undecided),
        ("skewed", found.skewed),
    ]
}

/// All series are there from the beginning, so that an alert on one of them can be seen to watch
/// something.
fn none_of(words: &'static [&'static str]) -> impl Iterator<Item = (&'static str, usize)> {
    words.iter().map(|word| (*word, 0))
}
