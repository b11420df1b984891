//! Counters of the prober. Labels come from fixed sets or from the config file, never from a shoot.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};
use strum::VariantArray;

use super::outage::OutageEnd;

/// A quarter of a minute to a day, in seconds.
const OUTAGE_BUCKETS: [f64; 10] = [
    15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0, 86_400.0,
];
const DIRECTIONS: [[&str; 1]; 2] = [["up"], ["down"]];

#[derive(Clone, Debug)]
pub struct Metrics {
    pub(super) probes: Labelled<2>,
    pub(super) probe_seconds: Histogram,
    pub(super) throttles: Counter,
    pub(super) scale_operations: Labelled<4>,
    pub(super) dry_run_writes: Labelled<3>,
    pub(super) decision_to_write: Family<Labels<1>, Histogram>,
    pub(super) default_replicas: Counter,
    pub(super) not_ready: Counter,
    pub(super) left_behind: Labelled<2>,
    pub(super) cancelled_scalings: Labelled<1>,
    pub probes_ended_while_held_down: Counter,
    pub(super) protected_without_lead: Labelled<1>,
    pub(super) outages: Labelled<1>,
    pub(super) outage_seconds: Histogram,
    pub(crate) owner_checks: Labelled<1>,
    pub(super) owner_prevented: Labelled<1>,
    pub panics: Counter,
}

type Labels<const N: usize> = [(&'static str, String); N];

/// A counter for each combination of the labels' values.
#[derive(Clone, Debug)]
pub(crate) struct Labelled<const N: usize> {
    names: [&'static str; N],
    counters: Family<Labels<N>, Counter>,
}

impl<const N: usize> Labelled<N> {
    fn labels(&self, values: [&str; N]) -> Labels<N> {
        std::array::from_fn(|at| (self.names[at], values[at].to_owned()))
    }

    pub(crate) fn inc(&self, values: [&str; N]) {
        let labels = self.labels(values);
        self.counters.get_or_create(&labels).inc();
    }

    /// Series that are there from the beginning show their first event as an increase.
    fn beginning_with(self, series: impl IntoIterator<Item = [&'static str; N]>) -> Self {
        for values in series {
            drop(self.counters.get_or_create(&self.labels(values)));
        }
        self
    }
}

/// Buckets of 5 ms to 41 s, by factors of 2: a healthy probe takes a few milliseconds, probeTimeout
/// is 30 s by default.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.0, 14))
}

/// Registers metrics.
struct Adding<'a>(&'a mut Registry);

impl Adding<'_> {
    fn metric<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }

    fn count(&mut self, name: &str, help: &str) -> Counter {
        self.metric(name, help, Counter::default())
    }

    fn labelled<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        names: [&'static str; N],
    ) -> Labelled<N> {
        let counters = self.metric(name, help, Family::default());
        Labelled { names, counters }
    }
}

impl Metrics {
    #[rustfmt::skip]
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let mut add = Adding(registry);
        let ends = OutageEnd::VARIANTS.iter().filter(|end| **end != OutageEnd::Other);
        let turns = Family::new_with_constructor(seconds as fn() -> Histogram);
        for [direction] in DIRECTIONS {
            drop(turns.get_or_create(&[("direction", direction.to_owned())]));
        }
        Self {
            probes: add.labelled("dwd_probes", "Probes by the stage they ended in and their result", ["stage", "result"]),
            probe_seconds: add.metric("dwd_probe_duration_seconds", "How long complete probes took", seconds()),
            throttles: add.count("dwd_throttles", "Probes that an API server answered with 429"),
            scale_operations: add.labelled("dwd_scale_operations", "Attempts to scale a resource, by result", ["direction", "kind", "name", "result"]),
            dry_run_writes: add.labelled("dwd_dry_run_writes", "Writes that a dry run would have made", ["direction", "kind", "name"]),
            decision_to_write: add.metric("dwd_decision_to_write_seconds", "From the turn of a resource in a scaling to the answer to its write, configured delays included", turns),
            default_replicas: add.count("dwd_restores_with_default_replicas", "Resources restored to 1 replica because the saved number was unusable"),
            not_ready: add.count("dwd_not_ready_in_time", "Restored resources that were not ready 5 s after their write, so that the next level went on without them"),
            left_behind: add.labelled("dwd_left_behind", "Resources that could not be restored within scaleUp.timeout, so that later levels went on without them", ["kind", "name"]),
            cancelled_scalings: add.labelled("dwd_cancelled_scalings", "Scalings cancelled because the verdict turned or the shoot was paused", ["direction"]).beginning_with(DIRECTIONS),
            probes_ended_while_held_down: add.count("dwd_probes_ended_while_held_down", "Shoots whose probe ended while resources were held down; these stay at 0"),
            protected_without_lead: add.labelled("dwd_protected_without_lead", "Writes by this replica while it did not lead: the leader did not act", ["direction"]).beginning_with(DIRECTIONS),
            outages: add.labelled("dwd_outages", "Outages that have ended and that this replica led or took part in, by how", ["end"]).beginning_with(ends.map(|end| [end.into_str()])),
            outage_seconds: add.metric("dwd_outage_duration_seconds", "How long these were, from the verdict to the last restore", Histogram::new(OUTAGE_BUCKETS)),
            owner_checks: add.labelled("dwd_owner_checks", "Checks of owner records, by result", ["result"]).beginning_with([["ours"], ["elsewhere"]]),
            owner_prevented: add.labelled("dwd_owner_prevented", "Writes that the owner record prevented", ["direction"]).beginning_with(DIRECTIONS),
            panics: add.count("dwd_panics", "Tasks of shoots that panicked and were restarted"),
        }
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
