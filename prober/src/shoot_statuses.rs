//! How all shoots are at present, as their tasks last reported. Read by metrics, the status page and health checks.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use serde::Serialize;

use crate::clock::Clock;
use crate::config::ResourceRef;
use crate::core::judgement::Finding;
use crate::core::moment::Moment;
use crate::core::plan::Direction;
use crate::core::verdict::{Tally, Verdict};

/// What is said of a shoot whose last probe was not complete, in the place of a verdict.
const UNKNOWN: &str = "unknown";

/// The status of each shoot. Cheap to clone; all clones share it.
#[derive(Clone)]
pub struct ShootStatuses {
    clock: Clock,
    /// Whether metrics tell shoots apart.
    per_shoot: bool,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    states: HashMap<String, &'static str>,
    probed: HashMap<String, ShootStatus>,
}

#[derive(Clone, Debug)]
pub struct ShootStatus {
    /// When the next probe is due; while one is under way, when that was.
    pub due: Moment,
    /// When the last probe was complete, or the first probe was due.
    pub complete: Moment,
    pub paused: bool,
    /// What carries the meltdown marker, and since when this process has seen it.
    pub held_down: BTreeMap<ResourceRef, Moment>,
    /// What the last complete probe found; none before the first.
    pub finding: Option<Arc<Finding>>,
    /// Why the last probe was not complete; none when it was.
    pub failure: Option<Failure>,
    pub scaling: Option<Direction>,
    pub intended: Vec<Intended>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub stage: &'static str,
    pub category: &'static str,
    pub message: String,
    pub failed_probes: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Intended {
    pub kind: String,
    pub name: String,
    pub before: i32,
    /// Its replicas then; the same when only annotations would be removed.
    pub after: i32,
}

/// Updates a shoot's status, and removes it when dropped.
pub struct StatusHandle {
    statuses: ShootStatuses,
    namespace: String,
}

impl ShootStatuses {
    /// Empty. With `per_shoot` there are metrics that tell shoots apart, so that their number grows with the shoots'.
    pub fn new(clock: Clock, per_shoot: bool) -> Self {
        Self { clock, per_shoot, inner: Arc::default() }
    }

    /// Notes what a Cluster says of its shoot, in one word from a fixed set; none when the Cluster is gone.
    pub fn set_state(&self, namespace: &str, state: Option<&'static str>) {
        let mut inner = self.lock();
        match state {
            Some(state) => inner.states.insert(namespace.to_owned(), state),
            None => inner.states.remove(namespace),
        };
    }

    /// Adds a shoot that is probed, with the moment of its first probe; the handle removes it.
    pub fn register(&self, namespace: String, first_probe: Moment) -> StatusHandle {
        let status = ShootStatus {
            due: first_probe,
            complete: first_probe,
            paused: false,
            held_down: BTreeMap::new(),
            finding: None,
            failure: None,
            scaling: None,
            intended: Vec::new(),
        };
        self.lock().probed.insert(namespace.clone(), status);
        StatusHandle { statuses: self.clone(), namespace }
    }

    /// The shoot whose probe is most overdue, if any is by more than `limit`.
    pub fn overdue(&self, limit: TimeDelta) -> Option<(String, TimeDelta)> {
        let now = self.clock.now();
        let inner = self.lock();
        let (namespace, status) = inner.probed.iter().min_by_key(|(_, status)| status.due)?;
        let late = now - status.due;
        (late > limit).then(|| (namespace.clone(), late))
    }

    pub fn shoots(&self) -> Vec<(String, &'static str, Option<ShootStatus>)> {
        let inner = self.lock();
        inner.states.iter().map(|(namespace, state)| (namespace.clone(), *state, inner.probed.get(namespace).cloned())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StatusHandle {
    pub fn update(&self, change: impl FnOnce(&mut ShootStatus)) {
        if let Some(status) = self.statuses.lock().probed.get_mut(&self.namespace) {
            change(status);
        }
    }
}

impl Drop for StatusHandle {
    fn drop(&mut self) {
        self.statuses.lock().probed.remove(&self.namespace);
    }
}

impl ShootStatus {
    /// What the last probe concluded; none if it was not complete.
    pub fn verdict(&self) -> Option<Verdict> {
        self.finding.as_ref().filter(|_| self.failure.is_none()).map(|finding| finding.verdict)
    }

    fn leases(&self) -> [(&'static str, usize); 4] {
        let (tally, skewed) = self.finding.as_ref().map_or((Tally::default(), 0), |finding| (finding.tally, finding.skewed));
        [("candidate", tally.candidates), ("expired", tally.expired), ("undecided", tally.undecided), ("skewed", skewed)]
    }

    /// Notes what carries the marker now; what did before keeps its time.
    pub fn set_held_down<'a>(&mut self, marked: impl IntoIterator<Item = &'a ResourceRef>, now: Moment) {
        let before = std::mem::take(&mut self.held_down);
        self.held_down =
            marked.into_iter().map(|resource| (resource.clone(), before.get(resource).copied().unwrap_or(now))).collect();
    }
}

impl std::fmt::Debug for ShootStatuses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShootStatuses").field("shoots", &self.lock().probed.len()).finish()
    }
}

/// The gauges: sums over all shoots, so that their number does not grow with that of the shoots.
impl Collector for ShootStatuses {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let now = self.clock.now();
        let inner = self.lock();
        let mut states: BTreeMap<&str, i64> = BTreeMap::new();
        for state in inner.states.values() {
            *states.entry(state).or_default() += 1;
        }
        let mut leases: BTreeMap<&str, i64> = BTreeMap::new();
        let mut excluded: BTreeMap<&str, i64> = BTreeMap::new();
        let mut held: BTreeMap<&ResourceRef, (i64, Moment)> = BTreeMap::new();
        // All series are there from the beginning, so that an alert on one of them can be seen to watch something.
        let verdicts = Verdict::ALL.map(Verdict::as_str).into_iter().chain([UNKNOWN]);
        let mut held_shoots: BTreeMap<&str, i64> = verdicts.map(|verdict| (verdict, 0)).collect();
        let mut oldest = TimeDelta::zero();
        for status in inner.probed.values() {
            for (state, count) in status.leases() {
                *leases.entry(state).or_default() += count as i64;
            }
            for (reason, count) in status.finding.iter().flat_map(|finding| &finding.excluded) {
                *excluded.entry(reason).or_default() += *count as i64;
            }
            for (resource, since) in &status.held_down {
                let (count, first) = held.entry(resource).or_insert((0, *since));
                *count += 1;
                *first = (*first).min(*since);
            }
            if !status.held_down.is_empty() {
                *held_shoots.entry(status.verdict().map_or(UNKNOWN, Verdict::as_str)).or_default() += 1;
            }
            oldest = oldest.max(now - status.complete);
        }
        let by = |label: &'static str, values: BTreeMap<&str, i64>| -> Vec<(Vec<(&'static str, String)>, f64)> {
            values.into_iter().map(|(value, count)| (vec![(label, value.to_owned())], count as f64)).collect()
        };
        let of = |resource: &ResourceRef| vec![("kind", resource.kind.clone()), ("name", resource.name.clone())];
        let counts: Vec<_> = held.iter().map(|(resource, (count, _))| (of(resource), *count as f64)).collect();
        let ages: Vec<_> = held.iter().map(|(resource, (_, first))| (of(resource), seconds(now - *first))).collect();
        gauges(&mut encoder, "dwd_shoots", "Shoots of the seed by what their Clusters say.", &by("state", states))?;
        gauges(&mut encoder, "dwd_leases", "Leases of the last complete probes of all shoots.", &by("state", leases))?;
        gauges(&mut encoder, "dwd_excluded_nodes", "Nodes or leases that did not count, by reason.", &by("reason", excluded))?;
        gauges(&mut encoder, "dwd_held_down", "Shoots in which a resource is held down.", &counts)?;
        gauges(&mut encoder, "dwd_held_down_seconds", "For how long a resource has been held down, the longest.", &ages)?;
        let help = "Shoots in which anything is held down, by what their last probes concluded.";
        gauges(&mut encoder, "dwd_held_down_shoots", help, &by("verdict", held_shoots))?;
        let help = "Time since the last complete probe, the longest.";
        gauge(&mut encoder, "dwd_oldest_complete_probe_seconds", help, seconds(oldest))?;
        let paused = inner.probed.values().filter(|status| status.paused).count();
        let help = "Shoots for which nothing is written, as their operators want it.";
        gauge(&mut encoder, "dwd_paused_shoots", help, paused as f64)?;
        if self.per_shoot { encode_shoots(&mut encoder, &inner.probed, now) } else { Ok(()) }
    }
}

fn encode_shoots(encoder: &mut DescriptorEncoder<'_>, probed: &HashMap<String, ShootStatus>, now: Moment) -> std::fmt::Result {
    let (mut leases, mut ages, mut held) = (Vec::new(), Vec::new(), Vec::new());
    for (namespace, status) in probed {
        let shoot = ("namespace", namespace.clone());
        leases.extend(status.leases().map(|(state, count)| (vec![shoot.clone(), ("state", state.to_owned())], count as f64)));
        ages.push((vec![shoot.clone()], seconds(now - status.complete)));
        held.extend(status.held_down.iter().map(|(resource, since)| {
            (vec![shoot.clone(), ("kind", resource.kind.clone()), ("name", resource.name.clone())], seconds(now - *since))
        }));
    }
    gauges(encoder, "dwd_shoot_leases", "Leases of the last complete probe.", &leases)?;
    gauges(encoder, "dwd_shoot_complete_probe_seconds", "Time since the last complete probe.", &ages)?;
    gauges(encoder, "dwd_shoot_held_down_seconds", "For how long a resource has been held down.", &held)
}

fn seconds(span: TimeDelta) -> f64 {
    span.num_milliseconds().max(0) as f64 / 1000.0
}

fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: &[(Vec<(&'static str, String)>, f64)],
) -> std::fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        ConstGauge::new(*value).encode(metric.encode_family(labels)?)?;
    }
    Ok(())
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> std::fmt::Result {
    ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::core::verdict::{HoldReason, Scope};

    fn shown(statuses: &ShootStatuses) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(statuses.clone()));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    fn kcm() -> ResourceRef {
        ResourceRef { api_version: "apps/v1".into(), kind: "Deployment".into(), name: "kube-controller-manager".into() }
    }

    #[tokio::test(start_paused = true)]
    async fn shoots_that_are_held_down_are_counted_by_what_their_last_probes_concluded() {
        let clock = Clock::start();
        let statuses = ShootStatuses::new(clock, false);
        let expect = |verdict: &str, count: u32| {
            let text = shown(&statuses);
            let line = format!("dwd_held_down_shoots{{verdict=\"{verdict}\"}} {count}.0");
            assert!(text.lines().any(|shown| shown == line), "{line} is missing in {text}");
        };
        for verdict in Verdict::ALL.map(Verdict::as_str).into_iter().chain([UNKNOWN]) {
            expect(verdict, 0);
        }
        let free = statuses.register("shoot--a--free".into(), clock.now());
        let found = |verdict| Some(Arc::new(Finding { verdict, ..Finding::default() }));
        free.update(|status| status.finding = found(Verdict::ScaleUp(Scope::All)));
        let held = statuses.register("shoot--a--held".into(), clock.now());
        held.update(|status| status.set_held_down([&kcm()], clock.now()));
        expect("scale_up", 0);
        expect(UNKNOWN, 1);
        held.update(|status| status.finding = found(Verdict::Hold(HoldReason::SingleCandidate)));
        expect("hold_single_candidate", 1);
        expect(UNKNOWN, 0);
        drop(held);
        expect("hold_single_candidate", 0);
    }
}
