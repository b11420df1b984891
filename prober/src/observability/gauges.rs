//! The gauges: sums over the views of all shoots, so that their number does not grow with that of the
//! shoots.

use std::collections::BTreeMap;
use std::fmt;

use chrono::TimeDelta;
use prober_core::verdict::Verdict;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use strum::VariantNames;

use super::in_seconds;
use super::shoot_statuses::ShootStatuses;
use super::view::{Found, ShootView};
use crate::owner_records::record::Ownership;

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

    fn family(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (impl EncodeLabelSet, f64)>,
    ) -> fmt::Result {
        let kind = MetricType::Gauge;
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in values {
            ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// The sum of the counts for each value of the label.
    fn sums<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        counts: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> fmt::Result {
        let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
        for (value, count) in counts {
            *sums.entry(value).or_default() += count;
        }
        let values = sums.into_iter();
        let values = values.map(|(value, sum)| ([(label, value)], sum as f64));
        self.family(name, help, values)
    }

    fn encode_probes(&mut self, statuses: &ShootStatuses, shoots: &[&ShootView]) -> fmt::Result {
        let found = || shoots.iter().filter_map(|shoot| shoot.found());
        self.sums(
            "dwd_shoots",
            "Shoots of the seed by what their Clusters say.",
            "state",
            shoots.iter().map(|shoot| (&*shoot.state, 1)),
        )?;
        self.sums(
            "dwd_leases",
            "Leases of the last complete probes of all shoots.",
            "state",
            none_of(&["candidate", "expired", "undecided", "skewed"])
                .chain(found().flat_map(leases)),
        )?;
        self.sums(
            "dwd_excluded_nodes",
            "Nodes or leases that did not count, by reason.",
            "reason",
            found().flat_map(|found| {
                found
                    .excluded
                    .iter()
                    .map(|(reason, count)| (&**reason, *count))
            }),
        )?;
        let probed = shoots.iter().filter(|shoot| shoot.probe.is_some());
        self.sums(
            "dwd_verdicts",
            "Probed shoots by what their last probes concluded.",
            "verdict",
            probed.map(|shoot| (verdict(shoot), 1)),
        )?;
        let complete = shoots
            .iter()
            .filter_map(|shoot| Some(shoot.probe.as_ref()?.complete));
        let oldest = complete
            .min()
            .map(|complete| statuses.clock.now() - complete);
        self.single(
            "dwd_oldest_complete_probe_seconds",
            "Time since the last complete probe, the longest.",
            seconds(oldest),
        )?;
        self.single(
            "dwd_paused_shoots",
            "Shoots for which nothing is written, as their operators want it.",
            shoots
                .iter()
                .filter(|shoot| shoot.paused == Some(true))
                .count() as f64,
        )?;
        self.single(
            "dwd_short_grace_shoots",
            "Shoots whose grace is too short for the renewals of their nodes, so that protection may come too late.",
            found().filter(|found| found.grace_too_short).count() as f64,
        )
    }

    fn encode_dependents(
        &mut self,
        statuses: &ShootStatuses,
        shoots: &[&ShootView],
    ) -> fmt::Result {
        let now = statuses.clock.wall(statuses.clock.now());
        let dependents = || shoots.iter().flat_map(|shoot| &shoot.dependents);
        let missing = dependents().filter(|dependent| dependent.is_missing);
        self.sums(
            "dwd_missing_resources",
            "Shoots in which a resource that the config names does not exist, and is not optional.",
            "name",
            missing.map(|dependent| (&*dependent.resource.name, 1)),
        )?;
        let mut ages: BTreeMap<_, Vec<TimeDelta>> = BTreeMap::new();
        for dependent in dependents() {
            let (resource, age) = (
                &dependent.resource,
                dependent.since.map(|since| now - since),
            );
            let labels = [("kind", &*resource.kind), ("name", &*resource.name)];
            age.into_iter()
                .for_each(|age| ages.entry(labels).or_default().push(age));
        }
        self.family(
            "dwd_held_down",
            "Shoots in which a resource is held down.",
            ages.iter()
                .map(|(labels, ages)| (*labels, ages.len() as f64)),
        )?;
        self.family(
            "dwd_held_down_seconds",
            "For how long a resource has been held down, the longest.",
            ages.iter()
                .map(|(labels, ages)| (*labels, seconds(ages.iter().max().copied()))),
        )?;
        let is_held = |shoot: &&&ShootView| {
            let mut dependents = shoot.dependents.iter();
            dependents.any(|dependent| dependent.since.is_some())
        };
        let held = shoots.iter().filter(is_held);
        self.sums(
            "dwd_held_down_shoots",
            "Shoots in which anything is held down, by what their last probes concluded.",
            "verdict",
            none_of(Verdict::WORDS)
                .chain([(UNKNOWN, 0)])
                .chain(held.map(|shoot| (verdict(shoot), 1))),
        )
    }
}

impl Collector for ShootStatuses {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut gauges = Gauges(encoder);
        let table = self.table.lock();
        let shoots: Vec<_> = table.shoots.values().collect();
        gauges.encode_probes(self, &shoots)?;
        gauges.encode_dependents(self, &shoots)?;
        let standings = self.owners.standings(self.clock.now());
        gauges.sums(
            "dwd_owner_shoots",
            "Shoots by what their owner records say.",
            "standing",
            none_of(Ownership::VARIANTS)
                .chain(standings.iter().map(|standing| (standing.into(), 1))),
        )
    }
}

fn verdict(shoot: &ShootView) -> &'static str {
    shoot
        .verdict()
        .map_or(UNKNOWN, |verdict| verdict.into_str())
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

fn seconds(span: Option<TimeDelta>) -> f64 {
    span.map_or(0.0, in_seconds).max(0.0)
}
