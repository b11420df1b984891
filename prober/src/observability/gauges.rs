//! The gauges: sums over all shoots, so that their number does not grow with that of the shoots.

use std::collections::BTreeMap;
use std::fmt;

use chrono::TimeDelta;
use prober_core::config::ResourceRef;
use prober_core::moment::Moment;
use prober_core::verdict::Verdict;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use strum::VariantNames;

use super::in_seconds;
use super::shoot_statuses::{ShootStatus, ShootStatuses};
use crate::owner::Standing;

/// In the place of a verdict, for a shoot whose last probe was not complete.
pub(super) const UNKNOWN: &str = "unknown";

/// Writes gauges, one after the other.
struct Gauges<'a>(DescriptorEncoder<'a>);

impl Gauges<'_> {
    fn single(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)
    }

    fn family(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (impl EncodeLabelSet, f64)>,
    ) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
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
        let values = sums
            .into_iter()
            .map(|(value, sum)| ([(label, value)], sum as f64));
        self.family(name, help, values)
    }
}

impl Collector for ShootStatuses {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut gauges = Gauges(encoder);
        let now = self.clock.now();
        let table = self.table.lock();
        let probed = || table.probed.values();
        let outcomes = || probed().flat_map(|status| &status.outcome);

        gauges.sums(
            "dwd_shoots",
            "Shoots of the seed by what their Clusters say.",
            "state",
            table.states.values().map(|state| (state.into(), 1)),
        )?;
        gauges.sums(
            "dwd_leases",
            "Leases of the last complete probes of all shoots.",
            "state",
            probed().flat_map(ShootStatus::leases),
        )?;
        gauges.sums(
            "dwd_excluded_nodes",
            "Nodes or leases that did not count, by reason.",
            "reason",
            outcomes()
                .flat_map(|outcome| &outcome.finding.excluded)
                .map(|(reason, count)| (*reason, *count)),
        )?;
        let verdicts = probed().map(|status| (status.verdict().map_or(UNKNOWN, <&str>::from), 1));
        gauges.sums(
            "dwd_verdicts",
            "Probed shoots by what their last probes concluded.",
            "verdict",
            verdicts,
        )?;
        encode_held_down(&mut gauges, &table.probed, now)?;
        // A shoot that is left alone is not probed.
        let at_work = probed().filter(|status| !status.has_stood_down());
        let oldest = at_work
            .map(|status| now - status.complete)
            .max()
            .unwrap_or_default();
        gauges.single(
            "dwd_oldest_complete_probe_seconds",
            "Time since the last complete probe, the longest.",
            seconds(oldest),
        )?;
        gauges.single(
            "dwd_paused_shoots",
            "Shoots for which nothing is written, as their operators want it.",
            probed().filter(|status| status.is_paused()).count() as f64,
        )?;
        let standings = self.owners.standings(now);
        gauges.sums(
            "dwd_owner_shoots",
            "Shoots by what their owner records say.",
            "standing",
            none_of(Standing::VARIANTS)
                .chain(standings.iter().map(|standing| (standing.into(), 1))),
        )?;
        encode_weak_protection(&mut gauges, &table.probed)
    }
}

/// Shoots of which a part would not be protected in an outage, or is not now.
fn encode_weak_protection(
    gauges: &mut Gauges<'_>,
    probed: &BTreeMap<String, ShootStatus>,
) -> fmt::Result {
    let missing = probed.values().flat_map(|status| &status.missing);
    gauges.sums(
        "dwd_missing_resources",
        "Shoots in which a resource that the config names does not exist, and is not optional.",
        "name",
        missing.map(|resource| (resource.name.as_str(), 1)),
    )?;
    let outcomes = probed.values().flat_map(|status| &status.outcome);
    let short = outcomes.filter(|outcome| outcome.finding.grace.is_too_short());
    gauges.single(
        "dwd_short_grace_shoots",
        "Shoots whose grace is too short for the renewals of their nodes, so that protection may come too late.",
        short.count() as f64,
    )
}

fn encode_held_down(
    gauges: &mut Gauges<'_>,
    probed: &BTreeMap<String, ShootStatus>,
    now: Moment,
) -> fmt::Result {
    // What belongs to another seed is not protected here, whatever its resources carry.
    let here = || {
        let elsewhere = |status: &&ShootStatus| status.owner == Some(Standing::Elsewhere);
        probed.values().filter(move |status| !elsewhere(status))
    };
    let mut ages: BTreeMap<&ResourceRef, Vec<TimeDelta>> = BTreeMap::new();
    for (resource, since) in here().flat_map(|status| &status.held_down) {
        ages.entry(resource).or_default().push(now - *since);
    }
    gauges.family(
        "dwd_held_down",
        "Shoots in which a resource is held down.",
        ages.iter()
            .map(|(resource, ages)| (resource_labels(resource), ages.len() as f64)),
    )?;
    let longest = |ages: &Vec<TimeDelta>| seconds(ages.iter().max().copied().unwrap_or_default());
    gauges.family(
        "dwd_held_down_seconds",
        "For how long a resource has been held down, the longest.",
        ages.iter()
            .map(|(resource, ages)| (resource_labels(resource), longest(ages))),
    )?;
    let held = here().filter(|status| !status.held_down.is_empty());
    let verdicts = held.map(|status| (status.verdict().map_or(UNKNOWN, <&str>::from), 1));
    gauges.sums(
        "dwd_held_down_shoots",
        "Shoots in which anything is held down, by what their last probes concluded.",
        "verdict",
        none_of(Verdict::WORDS)
            .chain([(UNKNOWN, 0)])
            .chain(verdicts),
    )
}

fn resource_labels(resource: &ResourceRef) -> [(&'static str, &str); 2] {
    [("kind", &resource.kind), ("name", &resource.name)]
}

/// All series are there from the beginning, so that an alert on one of them can be seen to watch
/// something.
fn none_of(words: &'static [&'static str]) -> impl Iterator<Item = (&'static str, usize)> {
    words.iter().map(|word| (*word, 0))
}

fn seconds(span: TimeDelta) -> f64 {
    in_seconds(span).max(0.0)
}
