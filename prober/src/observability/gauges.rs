//! The gauges: sums over all shoots, so that their number does not grow with that of the shoots,
//! unless flags want it.

use std::collections::{BTreeMap, HashMap};

use chrono::TimeDelta;
use prober_core::config::ResourceRef;
use prober_core::in_seconds;
use prober_core::moment::Moment;
use prober_core::owner::Standing;
use prober_core::verdict::Verdict;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use strum::VariantNames;

use super::metrics::resource_labels;
use super::shoot_statuses::{ShootStatus, ShootStatuses};

/// In the place of a verdict, for a shoot whose last probe was not complete.
pub(super) const UNKNOWN: &str = "unknown";

impl Collector for ShootStatuses {
    fn encode(&self, mut encoder: DescriptorEncoder) -> std::fmt::Result {
        let now = self.clock.now();
        let inner = self.inner.lock();
        let probed = || inner.probed.values();

        let states = sums("state", inner.states.values().map(|state| (*state, 1)));
        gauges(
            &mut encoder,
            "dwd_shoots",
            "Shoots of the seed by what their Clusters say.",
            states,
        )?;
        let leases = sums("state", probed().flat_map(ShootStatus::leases));
        gauges(
            &mut encoder,
            "dwd_leases",
            "Leases of the last complete probes of all shoots.",
            leases,
        )?;
        let excluded = probed()
            .flat_map(|status| &status.finding)
            .flat_map(|finding| &finding.excluded);
        let excluded = sums("reason", excluded.map(|(reason, count)| (*reason, *count)));
        gauges(
            &mut encoder,
            "dwd_excluded_nodes",
            "Nodes or leases that did not count, by reason.",
            excluded,
        )?;

        let mut held_down: BTreeMap<&ResourceRef, Vec<Moment>> = BTreeMap::new();
        // What belongs to another seed is not protected here, whatever its resources carry.
        let here =
            || probed().filter(|status| !matches!(status.owner, Some(Standing::Elsewhere { .. })));
        for (resource, since) in here().flat_map(|status| &status.held_down) {
            held_down.entry(resource).or_default().push(*since);
        }
        let counts = held_down
            .iter()
            .map(|(resource, since)| (resource_labels(resource), since.len() as f64));
        gauges(
            &mut encoder,
            "dwd_held_down",
            "Shoots in which a resource is held down.",
            counts,
        )?;
        let longest = |since: &[Moment]| {
            seconds(
                since
                    .iter()
                    .map(|since| now - *since)
                    .max()
                    .unwrap_or_default(),
            )
        };
        let ages = held_down
            .iter()
            .map(|(resource, since)| (resource_labels(resource), longest(since)));
        gauges(
            &mut encoder,
            "dwd_held_down_seconds",
            "For how long a resource has been held down, the longest.",
            ages,
        )?;

        // All series are there from the beginning, so that an alert on one of them can be seen to
        // watch something.
        let none = Verdict::WORDS
            .iter()
            .copied()
            .chain([UNKNOWN])
            .map(|verdict| (verdict, 0));
        let held = here().filter(|status| !status.held_down.is_empty());
        let held =
            none.chain(held.map(|status| (status.verdict().map_or(UNKNOWN, <&str>::from), 1)));
        let help = "Shoots in which anything is held down, by what their last probes concluded.";
        gauges(
            &mut encoder,
            "dwd_held_down_shoots",
            help,
            sums("verdict", held),
        )?;

        // A shoot that is left alone is not probed.
        let oldest = probed()
            .filter(|status| !status.has_stood_down())
            .map(|status| now - status.complete)
            .max()
            .unwrap_or_default();
        let help = "Time since the last complete probe, the longest.";
        gauge(
            &mut encoder,
            "dwd_oldest_complete_probe_seconds",
            help,
            seconds(oldest),
        )?;
        let paused = probed().filter(|status| status.paused).count();
        let help = "Shoots for which nothing is written, as their operators want it.";
        gauge(&mut encoder, "dwd_paused_shoots", help, paused as f64)?;
        let owners = Standing::VARIANTS.iter().map(|word| (*word, 0));
        let owners = owners.chain(
            self.owners
                .standings(now)
                .into_iter()
                .map(|standing| (standing.into_str(), 1)),
        );
        gauges(
            &mut encoder,
            "dwd_owner_shoots",
            "Shoots by what their owner records say.",
            sums("standing", owners),
        )?;
        let lost = probed()
            .flat_map(|status| &status.finding)
            .filter(|finding| !finding.lost_zones.is_empty())
            .count();
        let help = "Shoots with a zone whose nodes are lost, while the shoot as a whole is not.";
        gauge(&mut encoder, "dwd_lost_zone_shoots", help, lost as f64)?;
        if self.per_shoot {
            encode_shoots(&mut encoder, &inner.probed, now)
        } else {
            Ok(())
        }
    }
}

fn encode_shoots(
    encoder: &mut DescriptorEncoder<'_>,
    probed: &HashMap<String, ShootStatus>,
    now: Moment,
) -> std::fmt::Result {
    let leases = probed.iter().flat_map(|(namespace, status)| {
        status.leases().map(move |(state, count)| {
            (
                [("namespace", namespace.as_str()), ("state", state)],
                count as f64,
            )
        })
    });
    gauges(
        encoder,
        "dwd_shoot_leases",
        "Leases of the last complete probe.",
        leases,
    )?;
    let at_work = probed.iter().filter(|(_, status)| !status.has_stood_down());
    let ages = at_work.map(|(namespace, status)| {
        (
            [("namespace", namespace.as_str())],
            seconds(now - status.complete),
        )
    });
    gauges(
        encoder,
        "dwd_shoot_complete_probe_seconds",
        "Time since the last complete probe.",
        ages,
    )?;
    let lost = probed.iter().flat_map(|(namespace, status)| {
        let zones = status
            .finding
            .iter()
            .flat_map(|finding| &finding.lost_zones);
        zones.map(move |lost| {
            (
                [
                    ("namespace", namespace.as_str()),
                    ("zone", lost.zone.as_str()),
                ],
                lost.expired as f64,
            )
        })
    });
    gauges(
        encoder,
        "dwd_shoot_lost_zone_leases",
        "Expired leases of a zone that is lost while its shoot is not.",
        lost,
    )?;
    let held = probed.iter().flat_map(|(namespace, status)| {
        status.held_down.iter().map(move |(resource, since)| {
            (
                (
                    [("namespace", namespace.as_str())],
                    resource_labels(resource),
                ),
                seconds(now - *since),
            )
        })
    });
    gauges(
        encoder,
        "dwd_shoot_held_down_seconds",
        "For how long a resource has been held down.",
        held,
    )
}

type Sum<'a> = ([(&'static str, &'a str); 1], f64);

fn sums<'a>(
    label: &'static str,
    counts: impl IntoIterator<Item = (&'a str, usize)>,
) -> Vec<Sum<'a>> {
    let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
    for (value, count) in counts {
        *sums.entry(value).or_default() += count;
    }
    sums.into_iter()
        .map(|(value, sum)| ([(label, value)], sum as f64))
        .collect()
}

fn seconds(span: TimeDelta) -> f64 {
    in_seconds(span).max(0.0)
}

fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (impl EncodeLabelSet, f64)>,
) -> std::fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: f64,
) -> std::fmt::Result {
    ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}
