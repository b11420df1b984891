//! Reports on one shoot: in its view, the log, metrics and Events. Its task owns the reporter.

use std::collections::BTreeMap;
use std::iter::zip;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use common::events::Events;
use prober_core::config::{Config, DependentId, ResourceRef};
use prober_core::moment::Moment;
use prober_core::plan::Direction;
use prober_core::refusal::Refusal;
use prober_core::replicas::PlannedWrite;
use prober_core::shoot::{Report, Waits};
use prober_core::verdict::Verdict;

use super::facts::{describe_short, waits_for};
use super::metrics::count;
use super::outage::{Outage, OutageEnd};
use super::shoot_statuses::{SharedView, ShootStatuses};
use super::view::{Failure, Found, ProbeStatus, ShootView, ShownDependent, ShownWait};
use crate::shoot_client::error::{Cause, ProbeError, ProbeStep};
use crate::task::ShootContext;

pub(crate) struct Reporter {
    view: SharedView,
    outage: Option<Outage>,
}

/// Forgets what the task has published.
impl Drop for Reporter {
    fn drop(&mut self) {
        self.view.lock().forget_probe();
    }
}

impl Reporter {
    /// Shows a shoot as probed from now on, or without probes as treated by a decree.
    pub(crate) fn new(
        statuses: &ShootStatuses,
        namespace: &str,
        config: &Config,
        first_probe: Moment,
        decree: Option<Verdict>,
    ) -> Self {
        let (shared, outage) = (statuses.view(namespace), None);
        let mut view = shared.lock();
        view.decree = decree;
        view.probe = decree.is_none().then(|| ProbeStatus {
            due: first_probe,
            complete: first_probe,
            ..ProbeStatus::default()
        });
        view.dependents = config.dependents.iter().map(ShownDependent::new).collect();
        drop(view);
        Self {
            view: shared,
            outage,
        }
    }

    pub(crate) fn report(&mut self, context: &ShootContext, report: Report) {
        let metrics = &context.shared.metrics;
        match report {
            Report::Found => self.probe_complete(context),
            // The probe was complete but for them.
            Report::MachinesUnknown => {
                let (stage, cause) = (ProbeStep::Machines, Cause::SeedUnknown("Machines"));
                self.probe_failed(context, &ProbeError { stage, cause });
            }
            Report::Written {
                dependent,
                direction,
                change,
                took,
                since_due,
                without_lead,
            } => {
                self.outage.iter_mut().for_each(|outage| outage.writes += 1);
                metrics
                    .decision_to_write
                    .get_or_create(&[("direction", direction.into_str().to_owned())])
                    .observe(since_due.as_seconds_f64());
                context.written(dependent, direction, &change, took);
                if without_lead {
                    context.written_without_lead(dependent, direction);
                }
            }
            Report::NotScaled(at, direction, refusal) => {
                let mut view = self.view.lock();
                view.dependents[at.0].not_scaled = Some(refusal.to_string());
                context.not_scaled(at, direction, &refusal);
            }
            Report::Waits(at, direction, waits) => context.waits(at, direction, waits),
            Report::NotReady(at) => {
                metrics.not_ready.inc();
                tracing::warn!(resource = %context.resource(at), "resource is not ready yet, going on");
            }
            Report::LeftBehind(at) => {
                let resource = context.resource(at);
                let ResourceRef { kind, name, .. } = resource;
                count(&metrics.left_behind, [("kind", kind), ("name", name)]);
                tracing::warn!(%resource, "resource could not be restored within its timeout, going on without it");
            }
            Report::KeepsChanging(at) => {
                tracing::warn!(resource = %context.resource(at), "somebody else keeps writing the resource");
                let text = "Somebody else keeps writing it while it is being scaled";
                context.event(Events::warning, at, "KeepsChanging", text);
            }
            Report::WouldWrite(at, direction, before, after) => {
                context.would_write(at, direction, before, after);
            }
        }
    }

    fn probe_complete(&self, context: &ShootContext) {
        let Some(finding) = context.shoot.finding() else {
            return;
        };
        let mut view = self.view.lock();
        // A decree is no probe.
        let Some(probe) = &mut view.probe else { return };
        let (now, metrics) = (context.shared.clock.now(), &context.shared.metrics);
        let stage = match finding.nodes_known {
            true => ProbeStep::Nodes,
            false => ProbeStep::Leases,
        };
        let labels = [("stage", stage.into_str()), ("result", "complete")];
        count(&metrics.probes, labels);
        let took = now - context.probe_began;
        metrics.probe_seconds.observe(took.as_seconds_f64());
        if probe.failure.take().is_some() {
            tracing::info!("probes are complete again");
        }
        let found = Found::new(finding, context.shoot.counted_leases());
        let before = probe.found.as_ref();
        if found.grace_too_short && before.is_none_or(|before| !before.grace_too_short) {
            context.grace_too_short(&found);
        }
        if before.is_none_or(|before| before.verdict != found.verdict) {
            tracing::info!(
                verdict = found.verdict.into_str(),
                candidates = found.tally.candidates,
                expired = found.tally.expired,
                undecided = found.tally.undecided,
                fraction = found.fraction,
                excluded = found.list_excluded(),
                "probe complete"
            );
        }
        (probe.complete, probe.found) = (now, Some(found));
    }

    pub(crate) fn probe_failed(&self, context: &ShootContext, error: &ProbeError) {
        let (stage, category) = (error.stage.into_str(), error.cause.category());
        let metrics = &context.shared.metrics;
        count(&metrics.probes, [("stage", stage), ("result", category)]);
        if matches!(error.cause, Cause::Throttled { .. }) {
            metrics.throttles.inc();
        }
        let mut view = self.view.lock();
        let Some(probe) = &mut view.probe else { return };
        let before = probe.failure.take();
        if before.as_ref().is_none_or(|it| it.category != category) {
            tracing::warn!(stage, category, error = %error.cause, "probe not complete, nothing is concluded from it");
        }
        let (failed_probes, since) = match before {
            Some(before) => (before.failed_probes + 1, before.since),
            None => (1, context.now()),
        };
        probe.failure = Some(Failure {
            stage: stage.into(),
            category: category.into(),
            message: error.cause.to_string(),
            failed_probes,
            since,
        });
    }

    /// Called after each input and its reports: publishes the shoot, and follows its outage.
    pub(crate) fn updated(&mut self, context: &ShootContext) {
        let mut view = self.view.lock();
        context.publish(&mut view);
        let ended = Outage::follow(&mut self.outage, &view, context.now());
        drop(view);
        if let Some(outage) = ended {
            context.outage_ended(outage);
        }
    }

    /// Shows the writes that would be refused in an outage, and reports what has changed. Without a
    /// word none is shown while this replica rehearses nothing.
    pub(crate) fn rehearsed(
        &self,
        context: &ShootContext,
        refused: Option<BTreeMap<DependentId, String>>,
    ) {
        let is_rehearsed = refused.is_some();
        let mut refused = refused.unwrap_or_default();
        for (at, shown) in self.view.lock().dependents.iter_mut().enumerate() {
            let (id, resource) = (DependentId(at), &shown.resource);
            let now = refused.remove(&id);
            match (&shown.refused, &now) {
                (before, Some(words)) if before.as_ref() != Some(words) => {
                    tracing::warn!(%resource, words, "protection would be refused in an outage");
                    if before.is_none() {
                        let text = format!("In an outage it would be refused: {words}");
                        context.event(Events::warning, id, "ProtectionWouldBeRefused", &text);
                    }
                }
                (Some(_), None) if is_rehearsed => {
                    tracing::info!(%resource, "protection is not known to be refused any more");
                }
                _ => {}
            }
            shown.refused = now;
        }
    }

    /// Called once nobody probes the shoot any more.
    pub(crate) fn ended(&mut self, context: &ShootContext) {
        if let Some(outage) = self.outage.take() {
            context.outage_ended(outage.end(OutageEnd::ProbeEnded, context.now()));
        }
    }
}

impl ShootContext {
    /// Shows the shoot as it is now.
    fn publish(&self, view: &mut ShootView) {
        let (shoot, env, now) = (&self.shoot, &self.env, self.now());
        // A pause that was known stays in effect while it is not.
        view.paused = env.paused.or(view.paused);
        if let Some(probe) = &mut view.probe {
            probe.due = shoot.next_probe();
            let before = std::mem::replace(&mut probe.scaling, shoot.scaling());
            if let Some(direction) = before.filter(|_| before != probe.scaling) {
                self.scaling_ended(direction, view.paused == Some(true));
            }
        }
        let only_held_down = env.options.restore_only_held_down.value;
        let dependents = zip(&env.config.dependents, shoot.dependents());
        for (shown, (config, known)) in zip(&mut view.dependents, dependents) {
            if !known.fails() {
                shown.not_scaled = None;
            }
            shown.show(config, known.state());
            let is_held = known.stays_held_down(only_held_down);
            shown.since = is_held.then(|| shown.since.unwrap_or(now));
            shown.waits = known.waits().map(|waits| ShownWait {
                name: waits.reason.into_str().into(),
                reason: waits_for(waits.reason).into(),
                until: waits.until.map(|until| self.wall(until)),
            });
            shown.would_become = known.intended().map(PlannedWrite::replicas);
        }
    }

    /// Reports a scaling that ended before all was done.
    fn scaling_ended(&self, direction: Direction, paused: bool) {
        let verdict = self.shoot.verdict();
        let is_up = direction == Direction::Up;
        if paused || verdict.is_some_and(|verdict| verdict.is_up() != is_up) {
            let (direction, verdict) = (direction.into_str(), verdict.map(<&str>::from));
            let counter = &self.shared.metrics.cancelled_scalings;
            count(counter, [("direction", direction)]);
            tracing::info!(direction, verdict, paused, "scaling cancelled");
        }
    }

    fn grace_too_short(&self, found: &Found) {
        tracing::warn!(
            grace_s = found.unknown_after_seconds,
            expired_after_s = found.expired_after_seconds,
            "grace is too short for the renewals of the nodes' leases, protection may come too late"
        );
        let events = &self.shared.events;
        events.warning(
            &self.assigned.namespace,
            "GraceTooShort",
            &describe_short(found),
        );
    }

    fn waits(&self, at: DependentId, direction: Direction, waits: Waits) {
        tracing::info!(
            resource = %self.resource(at),
            direction = direction.into_str(),
            waits_for = waits_for(waits.reason),
            until = waits.until.map(|until| self.wall(until).to_rfc3339()),
            "resource is not written yet"
        );
    }

    fn written(
        &self,
        at: DependentId,
        direction: Direction,
        change: &PlannedWrite,
        took: Option<TimeDelta>,
    ) {
        let (resource, direction) = (self.resource(at), direction.into_str());
        let PlannedWrite { base, write } = change;
        let (before, after) = (base.replicas, change.replicas());
        self.count_write(resource, direction, "written");
        if write.used_default_replicas {
            self.shared.metrics.default_replicas.inc();
            tracing::warn!(%resource, memory = base.marks.replicas, "remembered replicas could not be used, scaled to 1");
        }
        tracing::info!(
            %resource,
            direction,
            replicas_before = before,
            replicas = after,
            took_s = took.map(TimeDelta::as_seconds_f64),
            "resource written"
        );
        let (reason, text) = match write.replicas {
            Some(0) => {
                let why = match self.assigned.decree {
                    Some(_) => "the shoot belongs to another seed",
                    None => "the nodes have lost the way to their API server",
                };
                let text = format!("Scaled from {before} to 0: {why}");
                return self.event(Events::warning, at, "ScaledDown", &text);
            }
            Some(_) => (
                "ScaledUp",
                format!("Scaled from {before} to {after}: the nodes reach their API server"),
            ),
            None if write.marks.held_down => (
                "ProtectionMarked",
                "Marked again as held down: somebody took the mark".to_owned(),
            ),
            None => (
                "ProtectionRemoved",
                format!("Annotations removed, replicas stay at {before}"),
            ),
        };
        self.event(Events::normal, at, reason, &text);
    }

    /// Reports that the leader did not act.
    fn written_without_lead(&self, at: DependentId, direction: Direction) {
        let leader = self.shared.election.status().leader;
        let leader = leader.unwrap_or_else(|| "nobody".to_owned());
        let done = match direction {
            Direction::Down => "taken to 0",
            Direction::Up => "brought back",
        };
        let (resource, direction) = (self.resource(at), direction.into_str());
        let counter = &self.shared.metrics.protected_without_lead;
        count(counter, [("direction", direction)]);
        tracing::warn!(%resource, direction, leader, "the leader did not act, this replica did in its place");
        let text =
            format!("The leader ({leader}) did not act: {done} by a replica that does not lead");
        self.event(Events::warning, at, "LeaderDidNotAct", &text);
    }

    fn not_scaled(&self, at: DependentId, direction: Direction, refusal: &Refusal) {
        let (resource, category) = (self.resource(at), refusal.into_str());
        let direction = direction.into_str();
        self.count_write(resource, direction, category);
        tracing::error!(%resource, direction, category, error = %refusal, "resource cannot be scaled");
        let text = format!("Cannot be scaled {direction}: {refusal}");
        self.event(Events::warning, at, "ScalingFailed", &text);
    }

    fn would_write(&self, at: DependentId, direction: Direction, before: i32, after: i32) {
        let (resource, direction) = (self.resource(at), direction.into_str());
        let ResourceRef { kind, name, .. } = resource;
        let labels = [("direction", direction), ("kind", kind), ("name", name)];
        count(&self.shared.metrics.dry_run_writes, labels);
        tracing::info!(%resource, direction, replicas_before = before, replicas = after, "dry run: resource would be written");
    }

    /// Reports an outage in the log, and in an Event and metrics if this replica leads or has taken
    /// part.
    fn outage_ended(&self, outage: Outage) {
        let (end, seconds) = (outage.end.into_str(), outage.seconds());
        let record = serde_json::to_string(&outage).unwrap_or_default();
        tracing::info!(end, seconds, record, "outage ended");
        let shared = &self.shared;
        if shared.election.leads() || outage.writes > 0 {
            count(&shared.metrics.outages, [("end", end)]);
            shared.metrics.outage_seconds.observe(seconds);
            let publish = match outage.end {
                OutageEnd::Restored | OutageEnd::NothingHeldDown => Events::normal,
                _ => Events::warning,
            };
            let text = outage.sentence();
            publish(
                &shared.events,
                &self.assigned.namespace,
                "OutageEnded",
                &text,
            );
        }
        shared.statuses.keep(outage);
    }

    /// A resource was written, or could not be: `result` is `written` or the error's category.
    fn count_write(&self, resource: &ResourceRef, direction: &str, result: &str) {
        let labels = [
            ("direction", direction),
            ("kind", &resource.kind),
            ("name", &resource.name),
            ("result", result),
        ];
        count(&self.shared.metrics.scale_operations, labels);
    }

    /// Publishes an Event about a resource of this shoot.
    fn event(
        &self,
        publish: fn(&Events, &str, &'static str, &str),
        at: DependentId,
        reason: &'static str,
        text: &str,
    ) {
        let ResourceRef { kind, name, .. } = self.resource(at);
        let about = format!("{kind} {}/{name}", self.assigned.namespace);
        publish(&self.shared.events, &about, reason, text);
    }

    fn resource(&self, dependent: DependentId) -> &ResourceRef {
        &self.env.config.dependent(dependent).resource
    }

    fn now(&self) -> DateTime<Utc> {
        self.wall(self.shared.clock.now())
    }

    /// To the millisecond.
    fn wall(&self, moment: Moment) -> DateTime<Utc> {
        self.shared.clock.wall(moment).trunc_subsecs(3)
    }
}

#[cfg(test)]
mod tests;
