//! Metrics of the prober. Labels come from fixed sets or from the config file, never from a shoot.

use std::time::Duration;

use prober_core::config::ResourceRef;
use prober_core::plan::Direction;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};
use strum::VariantArray;

use super::outage::{Outage, OutageEnd};
use crate::shoot_client::error::{Cause, ProbeError};

/// A quarter of a minute to a day, in seconds.
const OUTAGE_BUCKETS: [f64; 10] = [
    15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0, 86_400.0,
];

#[derive(Clone, Debug)]
pub struct Metrics {
    pub probes: ProbeMetrics,
    scale_operations: Family<(WriteLabels, ResultLabel), Counter>,
    dry_run_writes: Family<WriteLabels, Counter>,
    decision_to_write: Family<DirectionLabel, Histogram>,
    pub restores_with_default_replicas: Counter,
    pub not_ready: Counter,
    left_behind: Family<ResourceLabels, Counter>,
    pub cancelled_scalings: DirectionCounter,
    pub probes_ended_while_held_down: Counter,
    pub protected_without_lead: DirectionCounter,
    pub outages: OutageMetrics,
    pub owners: OwnerMetrics,
    pub panics: Counter,
}

#[derive(Clone, Debug)]
pub struct ProbeMetrics {
    ended: Family<ProbeLabels, Counter>,
    duration: Histogram,
    throttles: Counter,
}

#[derive(Clone, Debug)]
pub struct OutageMetrics {
    ended: Family<OutageLabels, Counter>,
    duration: Histogram,
}

#[derive(Clone, Debug)]
pub struct OwnerMetrics {
    checks: Family<ResultLabel, Counter>,
    pub prevented: DirectionCounter,
}

#[derive(Clone, Debug, Default)]
pub struct DirectionCounter(Family<DirectionLabel, Counter>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProbeLabels {
    stage: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabel {
    direction: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    direction: &'static str,
    kind: String,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutageLabels {
    end: &'static str,
    blip: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabels {
    kind: String,
    name: String,
}

impl From<Direction> for DirectionLabel {
    fn from(direction: Direction) -> Self {
        Self {
            direction: direction.into_str(),
        }
    }
}

impl WriteLabels {
    fn new(direction: Direction, resource: &ResourceRef) -> Self {
        Self {
            direction: direction.into_str(),
            kind: resource.kind.clone(),
            name: resource.name.clone(),
        }
    }
}

impl OutageLabels {
    fn new(end: OutageEnd, is_blip: bool) -> Self {
        Self {
            end: end.into_str(),
            blip: if is_blip { "true" } else { "false" },
        }
    }
}

/// Buckets of 5 ms to 41 s, by factors of 2: a healthy probe takes a few milliseconds, probeTimeout
/// is 30 s by default.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.0, 14))
}

fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            probes: ProbeMetrics::register(registry),
            scale_operations: add(
                registry,
                "dwd_scale_operations",
                "Attempts to scale a resource, by result",
                Family::default(),
            ),
            dry_run_writes: add(
                registry,
                "dwd_dry_run_writes",
                "Writes that a dry run would have made",
                Family::default(),
            ),
            decision_to_write: add(
                registry,
                "dwd_decision_to_write_seconds",
                "From the turn of a resource in a scaling to the answer to its write, configured delays included",
                Family::new_with_constructor(seconds),
            ),
            restores_with_default_replicas: add(
                registry,
                "dwd_restores_with_default_replicas",
                "Resources restored to 1 replica because the saved number was unusable",
                Counter::default(),
            ),
            not_ready: add(
                registry,
                "dwd_not_ready_in_time",
                "Restored resources that were not ready 5 s after their write, so that the next level went on without them",
                Counter::default(),
            ),
            left_behind: add(
                registry,
                "dwd_left_behind",
                "Resources that could not be restored within scaleUp.timeout, so that later levels went on without them",
                Family::default(),
            ),
            cancelled_scalings: DirectionCounter::register(
                registry,
                "dwd_cancelled_scalings",
                "Scalings cancelled because the verdict turned or the shoot was paused",
            ),
            probes_ended_while_held_down: add(
                registry,
                "dwd_probes_ended_while_held_down",
                "Shoots whose probe ended while resources were held down; these stay at 0",
                Counter::default(),
            ),
            protected_without_lead: DirectionCounter::register(
                registry,
                "dwd_protected_without_lead",
                "Writes by this replica while it did not lead: the leader did not act",
            ),
            outages: OutageMetrics::register(registry),
            owners: OwnerMetrics::register(registry),
            panics: add(
                registry,
                "dwd_panics",
                "Tasks of shoots that panicked and were restarted",
                Counter::default(),
            ),
        };
        for direction in [Direction::Up, Direction::Down] {
            drop(metrics.decision_to_write.get_or_create(&direction.into()));
        }
        metrics
    }

    /// A resource was written, or could not be: `result` is `written` or the error's category.
    pub(crate) fn scaled(
        &self,
        direction: Direction,
        resource: &ResourceRef,
        result: &'static str,
    ) {
        let labels = (
            WriteLabels::new(direction, resource),
            ResultLabel { result },
        );
        self.scale_operations.get_or_create(&labels).inc();
    }

    pub(crate) fn left_behind(&self, resource: &ResourceRef) {
        let (kind, name) = (resource.kind.clone(), resource.name.clone());
        let labels = ResourceLabels { kind, name };
        self.left_behind.get_or_create(&labels).inc();
    }

    pub(crate) fn dry_run_write(&self, direction: Direction, resource: &ResourceRef) {
        let labels = WriteLabels::new(direction, resource);
        self.dry_run_writes.get_or_create(&labels).inc();
    }

    /// A write was answered this long after its resource's turn in the scaling began.
    pub(crate) fn decided_and_written(&self, direction: Direction, after: Duration) {
        let histogram = self.decision_to_write.get_or_create(&direction.into());
        histogram.observe(after.as_secs_f64());
    }
}

impl ProbeMetrics {
    fn register(registry: &mut Registry) -> Self {
        Self {
            ended: add(
                registry,
                "dwd_probes",
                "Probes by the stage they ended in and their result",
                Family::default(),
            ),
            duration: add(
                registry,
                "dwd_probe_duration_seconds",
                "How long complete probes took",
                seconds(),
            ),
            throttles: add(
                registry,
                "dwd_throttles",
                "Probes that an API server answered with 429",
                Counter::default(),
            ),
        }
    }

    pub(crate) fn complete(&self, nodes_listed: bool, took: Duration) {
        let stage = if nodes_listed { "nodes" } else { "leases" };
        self.count(stage, "complete");
        self.duration.observe(took.as_secs_f64());
    }

    pub(crate) fn failed(&self, error: &ProbeError) {
        self.count(error.stage.into_str(), error.cause.category());
        if matches!(error.cause, Cause::Throttled { .. }) {
            self.throttles.inc();
        }
    }

    fn count(&self, stage: &'static str, result: &'static str) {
        self.ended
            .get_or_create(&ProbeLabels { stage, result })
            .inc();
    }
}

impl OutageMetrics {
    fn register(registry: &mut Registry) -> Self {
        let ended: Family<OutageLabels, Counter> = Family::default();
        for end in OutageEnd::VARIANTS
            .iter()
            .filter(|end| **end != OutageEnd::Other)
        {
            drop(ended.get_or_create(&OutageLabels::new(*end, false)));
            drop(ended.get_or_create(&OutageLabels::new(*end, true)));
        }
        Self {
            ended: add(
                registry,
                "dwd_outages",
                "Outages that have ended and that this replica led or took part in, by how; a blip's nodes were back within 25 s",
                ended,
            ),
            duration: add(
                registry,
                "dwd_outage_duration_seconds",
                "How long these were, from the verdict to the last restore",
                Histogram::new(OUTAGE_BUCKETS),
            ),
        }
    }

    pub(crate) fn ended(&self, outage: &Outage) {
        if let (Some(end), Some(seconds)) = (outage.end, outage.seconds()) {
            let labels = OutageLabels::new(end, outage.is_blip());
            self.ended.get_or_create(&labels).inc();
            self.duration.observe(seconds);
        }
    }
}

impl OwnerMetrics {
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            checks: add(
                registry,
                "dwd_owner_checks",
                "Checks of owner records, by result",
                Family::default(),
            ),
            prevented: DirectionCounter::register(
                registry,
                "dwd_owner_prevented",
                "Scalings that the owner record kept from beginning, or ended",
            ),
        };
        for result in ["ours", "elsewhere"] {
            drop(metrics.checks.get_or_create(&ResultLabel { result }));
        }
        metrics
    }

    /// `result` is `ours`, `elsewhere` or why the owner record could not be resolved.
    pub(crate) fn checked(&self, result: &'static str) {
        self.checks.get_or_create(&ResultLabel { result }).inc();
    }
}

impl DirectionCounter {
    /// Both series are there from the beginning, so that the first event of each is seen as an
    /// increase.
    fn register(registry: &mut Registry, name: &str, help: &str) -> Self {
        let family = add(registry, name, help, Family::default());
        for direction in [Direction::Up, Direction::Down] {
            drop(family.get_or_create(&direction.into()));
        }
        Self(family)
    }

    pub(crate) fn inc(&self, direction: Direction) {
        self.0.get_or_create(&direction.into()).inc();
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantNames;

    use crate::owner::{Standing, Why};
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
            Standing::VARIANTS,
            Why::VARIANTS,
        ];
        for word in words.concat() {
            assert!(
                page.contains(&format!("`{word}`")),
                "docs/metrics.md: {word}"
            );
        }
    }
}
