//! Counters of the prober. Labels come from fixed sets or from the config file, never from a shoot.

use std::time::Duration;

use chrono::TimeDelta;
use prober_core::config::ResourceRef;
use prober_core::plan::Direction;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};
use strum::VariantArray;

use super::in_seconds;
use super::outage::OutageEnd;
use crate::shoot_client::error::{Cause, ProbeError};

/// A quarter of a minute to a day, in seconds.
const OUTAGE_BUCKETS: [f64; 10] = [
    15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0, 86_400.0,
];

/// Values from fixed sets.
type Words<const N: usize> = [(&'static str, &'static str); N];
/// Also names from the config.
type Names<const N: usize> = [(&'static str, String); N];

#[derive(Clone, Debug)]
pub struct Metrics {
    probes: Family<Words<2>, Counter>,
    probe_duration: Histogram,
    throttles: Counter,
    scale_operations: Family<Names<4>, Counter>,
    dry_run_writes: Family<Names<3>, Counter>,
    decision_to_write: Family<Words<1>, Histogram>,
    pub(super) restores_with_default_replicas: Counter,
    pub(super) not_ready: Counter,
    left_behind: Family<Names<2>, Counter>,
    pub(super) cancelled_scalings: DirectionCounter,
    pub probes_ended_while_held_down: Counter,
    pub(super) protected_without_lead: DirectionCounter,
    outages: Family<Words<1>, Counter>,
    outage_duration: Histogram,
    owner_checks: Family<Words<1>, Counter>,
    pub(super) owner_prevented: DirectionCounter,
    pub panics: Counter,
}

#[derive(Clone, Debug, Default)]
pub(super) struct DirectionCounter(Family<Words<1>, Counter>);

fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

fn count<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    add(registry, name, help, M::default())
}

/// Buckets of 5 ms to 41 s, by factors of 2: a healthy probe takes a few milliseconds, probeTimeout
/// is 30 s by default.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.0, 14))
}

fn by_direction(direction: Direction) -> Words<1> {
    [("direction", direction.into_str())]
}

fn by_resource(resource: &ResourceRef) -> Names<2> {
    [
        ("kind", resource.kind.clone()),
        ("name", resource.name.clone()),
    ]
}

impl Metrics {
    #[rustfmt::skip]
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            probes: count(registry, "dwd_probes", "Probes by the stage they ended in and their result"),
            probe_duration: add(registry, "dwd_probe_duration_seconds", "How long complete probes took", seconds()),
            throttles: count(registry, "dwd_throttles", "Probes that an API server answered with 429"),
            scale_operations: count(registry, "dwd_scale_operations", "Attempts to scale a resource, by result"),
            dry_run_writes: count(registry, "dwd_dry_run_writes", "Writes that a dry run would have made"),
            decision_to_write: add(registry, "dwd_decision_to_write_seconds", "From the turn of a resource in a scaling to the answer to its write, configured delays included", Family::new_with_constructor(seconds)),
            restores_with_default_replicas: count(registry, "dwd_restores_with_default_replicas", "Resources restored to 1 replica because the saved number was unusable"),
            not_ready: count(registry, "dwd_not_ready_in_time", "Restored resources that were not ready 5 s after their write, so that the next level went on without them"),
            left_behind: count(registry, "dwd_left_behind", "Resources that could not be restored within scaleUp.timeout, so that later levels went on without them"),
            cancelled_scalings: count_directions(registry, "dwd_cancelled_scalings", "Scalings cancelled because the verdict turned or the shoot was paused"),
            probes_ended_while_held_down: count(registry, "dwd_probes_ended_while_held_down", "Shoots whose probe ended while resources were held down; these stay at 0"),
            protected_without_lead: count_directions(registry, "dwd_protected_without_lead", "Writes by this replica while it did not lead: the leader did not act"),
            outages: count(registry, "dwd_outages", "Outages that have ended and that this replica led or took part in, by how"),
            outage_duration: add(registry, "dwd_outage_duration_seconds", "How long these were, from the verdict to the last restore", Histogram::new(OUTAGE_BUCKETS)),
            owner_checks: count(registry, "dwd_owner_checks", "Checks of owner records, by result"),
            owner_prevented: count_directions(registry, "dwd_owner_prevented", "Writes that the owner record prevented"),
            panics: count(registry, "dwd_panics", "Tasks of shoots that panicked and were restarted"),
        };
        // Series that are there from the beginning show their first event as an increase.
        for direction in [Direction::Up, Direction::Down] {
            drop(metrics.decision_to_write.get_or_create(&by_direction(direction)));
        }
        for end in OutageEnd::VARIANTS.iter().filter(|end| **end != OutageEnd::Other) {
            drop(metrics.outages.get_or_create(&[("end", end.into_str())]));
        }
        for result in ["ours", "elsewhere"] {
            drop(metrics.owner_checks.get_or_create(&[("result", result)]));
        }
        metrics
    }

    pub(super) fn probe_complete(&self, nodes_listed: bool, took: Duration) {
        let stage = if nodes_listed { "nodes" } else { "leases" };
        self.probe_ended(stage, "complete");
        self.probe_duration.observe(took.as_secs_f64());
    }

    pub(super) fn probe_failed(&self, error: &ProbeError) {
        self.probe_ended(error.stage.into_str(), error.cause.category());
        if matches!(error.cause, Cause::Throttled { .. }) {
            self.throttles.inc();
        }
    }

    fn probe_ended(&self, stage: &'static str, result: &'static str) {
        let labels = [("stage", stage), ("result", result)];
        self.probes.get_or_create(&labels).inc();
    }

    /// A resource was written, or could not be: `result` is `written` or the error's category.
    pub(super) fn scaled(&self, direction: Direction, resource: &ResourceRef, result: &str) {
        let [kind, name] = by_resource(resource);
        let direction = ("direction", direction.into_str().to_owned());
        let labels = [direction, kind, name, ("result", result.to_owned())];
        self.scale_operations.get_or_create(&labels).inc();
    }

    pub(super) fn left_behind(&self, resource: &ResourceRef) {
        let labels = by_resource(resource);
        self.left_behind.get_or_create(&labels).inc();
    }

    pub(super) fn dry_run_write(&self, direction: Direction, resource: &ResourceRef) {
        let [kind, name] = by_resource(resource);
        let labels = [("direction", direction.into_str().to_owned()), kind, name];
        self.dry_run_writes.get_or_create(&labels).inc();
    }

    /// A write was answered this long after its resource's turn in the scaling began.
    pub(super) fn decided_and_written(&self, direction: Direction, after: TimeDelta) {
        let labels = by_direction(direction);
        let histogram = self.decision_to_write.get_or_create(&labels);
        histogram.observe(in_seconds(after));
    }

    pub(super) fn outage_ended(&self, end: OutageEnd, seconds: f64) {
        let labels = [("end", end.into_str())];
        self.outages.get_or_create(&labels).inc();
        self.outage_duration.observe(seconds);
    }

    /// `result` is `ours`, `elsewhere` or why the owner record could not be resolved.
    pub(crate) fn owner_checked(&self, result: &'static str) {
        self.owner_checks.get_or_create(&[("result", result)]).inc();
    }
}

fn count_directions(registry: &mut Registry, name: &str, help: &str) -> DirectionCounter {
    let counter = DirectionCounter(count(registry, name, help));
    for direction in [Direction::Up, Direction::Down] {
        drop(counter.0.get_or_create(&by_direction(direction)));
    }
    counter
}

impl DirectionCounter {
    pub(super) fn inc(&self, direction: Direction) {
        self.0.get_or_create(&by_direction(direction)).inc();
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantNames;

    use crate::owner_records::record::{Ownership, Unresolved};
    use crate::shoot_client::error::ProbeStep;
    use prober_core::lifecycle::{StopReason, WaitReason};
    use prober_core::verdict::Exclusion;

    #[test]
    fn the_words_that_operators_search_for_are_these() {
        let page = include_str!("../../../docs/metrics.md");
        let words = [
            ProbeStep::VARIANTS,
            StopReason::VARIANTS,
            WaitReason::VARIANTS,
            Exclusion::VARIANTS,
            Ownership::VARIANTS,
            Unresolved::VARIANTS,
        ];
        // No check ends in that.
        let words = words
            .concat()
            .into_iter()
            .filter(|word| *word != "suspended");
        for word in words {
            assert!(
                page.contains(&format!("`{word}`")),
                "docs/metrics.md: {word}"
            );
        }
    }
}
