//! What the prober counts. Labels come from fixed sets or from the config file, never from a shoot.

use std::time::Duration;

use prober_core::config::ResourceRef;
use prober_core::outage::{End, Outage};
use prober_core::plan::Direction;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use strum::VariantArray;

use crate::shoot_client::error::{Cause, ProbeError};

/// Labels whose values are from fixed sets.
type Words<const N: usize> = [(&'static str, &'static str); N];
/// A direction and a resource.
type WriteLabels = (Words<1>, ResourceLabels);
pub type ResourceLabels = [(&'static str, String); 2];

#[derive(Clone, Debug)]
pub struct Metrics {
    probes: Family<Words<2>, Counter>,
    probe_duration: Histogram,
    throttles: Counter,
    scale_operations: Family<(WriteLabels, Words<1>), Counter>,
    dry_run_writes: Family<WriteLabels, Counter>,
    decision_to_write: Family<Words<1>, Histogram>,
    pub memory_fallbacks: Counter,
    pub not_ready: Counter,
    abandoned_flows: Family<Words<1>, Counter>,
    pub probes_ended_while_held_down: Counter,
    without_lead: Family<Words<1>, Counter>,
    outages: Family<Words<2>, Counter>,
    outage_duration: Histogram,
    owner_checks: Family<Words<1>, Counter>,
    owner_prevented: Family<Words<1>, Counter>,
    pub panics: Counter,
}

/// From 5 ms to 41 s, by factors of 2: a healthy probe takes a few milliseconds, probeTimeout is 30
/// s by default.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.0, 14))
}

/// From a quarter of a minute to a day, in seconds.
const OUTAGES: [f64; 10] = [
    15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0, 86_400.0,
];

fn direction_label(direction: Direction) -> Words<1> {
    [("direction", direction.into_str())]
}

pub fn resource_labels(resource: &ResourceRef) -> ResourceLabels {
    [
        ("kind", resource.kind.clone()),
        ("name", resource.name.clone()),
    ]
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            probes: Family::default(),
            probe_duration: seconds(),
            throttles: Counter::default(),
            scale_operations: Family::default(),
            dry_run_writes: Family::default(),
            decision_to_write: Family::new_with_constructor(seconds),
            memory_fallbacks: Counter::default(),
            not_ready: Counter::default(),
            abandoned_flows: Family::default(),
            probes_ended_while_held_down: Counter::default(),
            without_lead: Family::default(),
            outages: Family::default(),
            outage_duration: Histogram::new(OUTAGES),
            owner_checks: Family::default(),
            owner_prevented: Family::default(),
            panics: Counter::default(),
        };
        registry.register(
            "dwd_probes",
            "Probes by the stage they ended in and their result",
            metrics.probes.clone(),
        );
        registry.register(
            "dwd_probe_duration_seconds",
            "How long complete probes took",
            metrics.probe_duration.clone(),
        );
        registry.register(
            "dwd_throttles",
            "Probes that an API server answered with 429",
            metrics.throttles.clone(),
        );
        registry.register(
            "dwd_scale_operations",
            "Attempts to scale a resource, by result",
            metrics.scale_operations.clone(),
        );
        registry.register(
            "dwd_dry_run_writes",
            "Writes that a dry run would have made",
            metrics.dry_run_writes.clone(),
        );
        let help = "From the turn of a resource in a flow to the answer to its write, configured delays included";
        registry.register(
            "dwd_decision_to_write_seconds",
            help,
            metrics.decision_to_write.clone(),
        );
        let help =
            "Resources restored to 1 replica because the remembered number could not be used";
        registry.register(
            "dwd_memory_fallbacks",
            help,
            metrics.memory_fallbacks.clone(),
        );
        let help = "Restored resources that were not ready 5 s after their write, so that the next level went on without them";
        registry.register("dwd_not_ready_in_time", help, metrics.not_ready.clone());
        let help = "Scale flows given up because the verdict turned or the shoot was paused";
        registry.register("dwd_abandoned_flows", help, metrics.abandoned_flows.clone());
        let help = "Shoots whose probe ended while resources were held down; these stay at 0";
        registry.register(
            "dwd_probes_ended_while_held_down",
            help,
            metrics.probes_ended_while_held_down.clone(),
        );
        let help = "Writes by this replica while it did not lead: the leader did not act";
        registry.register(
            "dwd_protected_without_lead",
            help,
            metrics.without_lead.clone(),
        );
        let help = "Outages that have ended and that this replica led or took part in, by how; a blip's nodes were back within 25 s";
        registry.register("dwd_outages", help, metrics.outages.clone());
        let help = "How long these were, from the verdict to the last restore";
        registry.register(
            "dwd_outage_duration_seconds",
            help,
            metrics.outage_duration.clone(),
        );
        registry.register(
            "dwd_owner_checks",
            "Checks of owner records, by result",
            metrics.owner_checks.clone(),
        );
        let help = "Scalings that the owner record kept from beginning, or ended";
        registry.register("dwd_owner_prevented", help, metrics.owner_prevented.clone());
        registry.register(
            "dwd_panics",
            "Tasks of shoots that panicked and were restarted",
            metrics.panics.clone(),
        );
        // Both series are there from the beginning, so that the first event of each is seen as an
        // increase.
        for direction in [Direction::Up, Direction::Down].map(direction_label) {
            drop(metrics.abandoned_flows.get_or_create(&direction));
            drop(metrics.decision_to_write.get_or_create(&direction));
            drop(metrics.without_lead.get_or_create(&direction));
            drop(metrics.owner_prevented.get_or_create(&direction));
        }
        for end in End::VARIANTS.iter().filter(|end| **end != End::Other) {
            for blip in ["false", "true"] {
                drop(
                    metrics
                        .outages
                        .get_or_create(&[("end", end.into_str()), ("blip", blip)]),
                );
            }
        }
        for result in ["ours", "elsewhere"] {
            drop(metrics.owner_checks.get_or_create(&[("result", result)]));
        }
        metrics
    }

    pub fn probe_complete(&self, nodes_listed: bool, took: Duration) {
        let stage = if nodes_listed { "nodes" } else { "leases" };
        self.probes
            .get_or_create(&[("stage", stage), ("result", "complete")])
            .inc();
        self.probe_duration.observe(took.as_secs_f64());
    }

    pub fn probe_failed(&self, error: &ProbeError) {
        self.probes
            .get_or_create(&[
                ("stage", error.stage.into_str()),
                ("result", error.cause.category()),
            ])
            .inc();
        if matches!(error.cause, Cause::Throttled { .. }) {
            self.throttles.inc();
        }
    }

    /// A resource was written, or could not be: `result` is `written` or the error's category.
    pub fn scaled(&self, direction: Direction, resource: &ResourceRef, result: &'static str) {
        let labels = (
            (direction_label(direction), resource_labels(resource)),
            [("result", result)],
        );
        self.scale_operations.get_or_create(&labels).inc();
    }

    pub fn dry_run_write(&self, direction: Direction, resource: &ResourceRef) {
        self.dry_run_writes
            .get_or_create(&(direction_label(direction), resource_labels(resource)))
            .inc();
    }

    /// A write was answered this long after its resource's turn in the flow began.
    pub fn decided_and_written(&self, direction: Direction, after: Duration) {
        self.decision_to_write
            .get_or_create(&direction_label(direction))
            .observe(after.as_secs_f64());
    }

    pub fn flow_abandoned(&self, direction: Direction) {
        self.abandoned_flows
            .get_or_create(&direction_label(direction))
            .inc();
    }

    /// A resource was written although this replica does not lead (D-50).
    pub fn protected_without_lead(&self, direction: Direction) {
        self.without_lead
            .get_or_create(&direction_label(direction))
            .inc();
    }

    pub fn outage_ended(&self, outage: &Outage) {
        let (Some(end), Some(seconds)) = (outage.end, outage.seconds()) else {
            return;
        };
        let blip = if outage.is_blip() { "true" } else { "false" };
        self.outages
            .get_or_create(&[("end", end.into_str()), ("blip", blip)])
            .inc();
        self.outage_duration.observe(seconds);
    }

    /// An owner record was checked: `result` is `ours`, `elsewhere` or why it could not be
    /// resolved.
    pub fn owner_checked(&self, result: &'static str) {
        self.owner_checks.get_or_create(&[("result", result)]).inc();
    }

    pub fn owner_prevented(&self, direction: Direction) {
        self.owner_prevented
            .get_or_create(&direction_label(direction))
            .inc();
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantNames;

    use super::*;
    use crate::shoot_client::error::Stage;
    use prober_core::lease::LeaseState;
    use prober_core::lifecycle::{StopReason, WaitReason};
    use prober_core::options::Source;
    use prober_core::owner::{Standing, Unresolved};
    use prober_core::verdict::Exclusion;

    #[test]
    fn the_words_that_operators_search_for_are_these() {
        assert_eq!(Direction::VARIANTS, ["up", "down"]);
        assert_eq!(
            Stage::VARIANTS,
            ["kubeconfig", "version", "leases", "nodes", "machines"]
        );
        assert_eq!(
            StopReason::VARIANTS,
            [
                "deleting",
                "self_hosted",
                "hibernated",
                "migrating",
                "workerless"
            ]
        );
        assert_eq!(WaitReason::VARIANTS, ["waking_up", "not_yet_reconciled"]);
        assert_eq!(LeaseState::VARIANTS, ["valid", "expired", "undecided"]);
        assert_eq!(
            Source::VARIANTS,
            ["default", "config", "garden", "namespace"]
        );
        let of_nodes = [
            "no_usable_machine",
            "not_managed",
            "unhealthy_condition",
            "in_place_update",
        ];
        assert_eq!(
            Exclusion::VARIANTS,
            [
                of_nodes.as_slice(),
                &["no_node", "no_lease", "no_renew_time"]
            ]
            .concat()
        );
        assert_eq!(
            Standing::VARIANTS,
            [
                "ours",
                "not_checked",
                "unproven",
                "doubted",
                "elsewhere",
                "unresolved"
            ]
        );
        let resolved = [
            "no_name",
            "no_record",
            "ambiguous",
            "server",
            "refused",
            "timeout",
            "truncated",
            "network",
            "decode",
        ];
        assert_eq!(
            Unresolved::VARIANTS,
            [resolved.as_slice(), &["unknown", "no_servers", "suspended"]].concat()
        );
    }
}
