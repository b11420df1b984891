//! Reports on one shoot: in its view, the log, metrics and Events. Its task owns the reporter.

use std::collections::BTreeMap;
use std::iter::zip;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use common::events::Events;
use prober_core::config::{Config, DependentId, ResourceRef};
use prober_core::moment::Moment;
use prober_core::plan::Direction;
use prober_core::replicas::PlannedWrite;
use prober_core::shoot::Report;
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
        let mut view = self.view.lock();
        view.dependents.clear();
        (view.decree, view.probe, view.is_paused) = (None, None, false);
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
        let (view, outage) = (statuses.view(namespace), None);
        let probe = ProbeStatus {
            due: first_probe,
            complete: first_probe,
            ..ProbeStatus::default()
        };
        let mut shown = view.lock();
        shown.decree = decree;
        shown.probe = decree.is_none().then_some(probe);
        shown.dependents = config.dependents.iter().map(ShownDependent::new).collect();
        drop(shown);
        Self { view, outage }
    }

    pub(crate) fn report(&mut self, context: &ShootContext, report: Report) {
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
                since_due,
                without_lead,
            } => {
                self.outage.iter_mut().for_each(|outage| outage.writes += 1);
                context.written(dependent, direction, &change, since_due, without_lead);
            }
            Report::NotScaled(at, direction, refusal) => {
                self.view.lock().dependents[at.0].not_scaled = Some(refusal.to_string());
                let (resource, category) = (context.resource(at), refusal.into_str());
                let direction = direction.into_str();
                context.count_write(resource, direction, category);
                tracing::error!(%resource, direction, category, error = %refusal, "resource cannot be scaled");
                let text = format!("Cannot be scaled {direction}: {refusal}");
                context.event(Events::warning, at, "ScalingFailed", &text);
            }
            Report::Waits(at, direction, waits) => tracing::info!(
                resource = %context.resource(at),
                direction = direction.into_str(),
                waits_for = waits_for(waits.reason),
                until = waits.until.map(|until| context.wall(until).to_rfc3339()),
                "resource is not written yet"
            ),
            Report::NotReady(at) => {
                tracing::warn!(resource = %context.resource(at), "resource is not ready yet, going on");
            }
            Report::LeftBehind(at) => {
                let resource = context.resource(at);
                let labels = [("kind", &*resource.kind), ("name", &resource.name)];
                count(&context.shared.metrics.left_behind, labels);
                tracing::warn!(%resource, "resource could not be restored within its timeout, going on without it");
            }
            Report::KeepsChanging(at) => {
                tracing::warn!(resource = %context.resource(at), "somebody else keeps writing the resource");
                let text = "Somebody else keeps writing it";
                context.event(Events::warning, at, "KeepsChanging", text);
            }
            Report::WouldWrite(at, direction, before, after) => {
                let (resource, direction) = (context.resource(at), direction.into_str());
                let labels = [
                    ("direction", direction),
                    ("kind", &resource.kind),
                    ("name", &resource.name),
                ];
                count(&context.shared.metrics.dry_run_writes, labels);
                tracing::info!(%resource, direction, replicas_before = before, replicas = after, "dry run: resource would be written");
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
            tracing::warn!(
                grace_s = found.unknown_after_seconds,
                expired_after_s = found.expired_after_seconds,
                "grace is too short for the renewals of the nodes' leases, protection may come too late"
            );
            let events = &context.shared.events;
            events.warning(
                &context.assigned.namespace,
                "GraceTooShort",
                &describe_short(&found),
            );
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
        let labels = [("stage", stage), ("result", category)];
        count(&context.shared.metrics.probes, labels);
        let mut view = self.view.lock();
        let Some(probe) = &mut view.probe else { return };
        let (failed_probes, since, is_known) = match probe.failure.take() {
            Some(before) => (
                before.failed_probes + 1,
                before.since,
                before.category == category,
            ),
            None => (1, context.now(), false),
        };
        if !is_known {
            tracing::warn!(stage, category, error = %error.cause, "probe not complete, nothing is concluded from it");
        }
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
        let is_written = context.shoot.scaling().is_some();
        let ended = Outage::follow(&mut self.outage, &view, is_written, context.now());
        drop(view);
        if let Some(outage) = ended {
            context.outage_ended(outage);
        }
    }

    /// Shows the writes that would be refused in an outage, if this replica rehearses them, and reports
    /// those that were not, or with other words.
    pub(crate) fn rehearsed(
        &self,
        context: &ShootContext,
        refused: Option<BTreeMap<DependentId, String>>,
    ) {
        let mut refused = refused.unwrap_or_default();
        for (at, shown) in self.view.lock().dependents.iter_mut().enumerate() {
            let at = DependentId(at);
            let before = std::mem::replace(&mut shown.refused, refused.remove(&at));
            if let Some(words) = shown.refused.as_ref().filter(|_| shown.refused != before) {
                tracing::warn!(resource = %shown.resource, words, "protection would be refused in an outage");
                let text = format!("In an outage it would be refused: {words}");
                context.event(Events::warning, at, "ProtectionWouldBeRefused", &text);
            }
        }
    }

    /// Called once nobody probes the shoot any more.
    pub(crate) fn ended(&mut self, context: &ShootContext) {
        if let Some(outage) = self.outage.take() {
            context.outage_ended(outage.end(context.now()));
        }
    }
}

impl ShootContext {
    /// Shows the shoot as it is now.
    fn publish(&self, view: &mut ShootView) {
        let (shoot, env, now) = (&self.shoot, &self.env, self.now());
        // A pause that was known stays in effect while it is not.
        view.is_paused = env.paused.unwrap_or(view.is_paused);
        if let Some(probe) = &mut view.probe {
            probe.due = shoot.next_probe();
        }
        let only_held_down = env.options.restore_only_held_down.value;
        for (shown, known) in zip(&mut view.dependents, shoot.dependents()) {
            if !known.fails() {
                shown.not_scaled = None;
            }
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

    fn written(
        &self,
        at: DependentId,
        direction: Direction,
        change: &PlannedWrite,
        since_due: TimeDelta,
        without_lead: bool,
    ) {
        let (resource, direction) = (self.resource(at), direction.into_str());
        let PlannedWrite { base, write } = change;
        let (before, after) = (base.replicas, change.replicas());
        self.count_write(resource, direction, "written");
        let turns = &self.shared.metrics.decision_to_write;
        let turns = turns.get_or_create(&[("direction", direction.to_owned())]);
        turns.observe(since_due.as_seconds_f64());
        if write.used_default_replicas {
            self.shared.metrics.default_replicas.inc();
            tracing::warn!(%resource, memory = base.marks.replicas, "remembered replicas could not be used, scaled to 1");
        }
        tracing::info!(
            %resource,
            direction,
            replicas_before = before,
            replicas = after,
            "resource written"
        );
        let publish = match write.replicas {
            Some(0) => Events::warning,
            _ => Events::normal,
        };
        let (reason, text) = match write.replicas {
            Some(0) if self.assigned.decree.is_some() => (
                "ScaledDown",
                format!("Scaled from {before} to 0: the shoot belongs to another seed"),
            ),
            Some(0) => (
                "ScaledDown",
                format!(
                    "Scaled from {before} to 0: the nodes have lost the way to their API server"
                ),
            ),
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
        self.event(publish, at, reason, &text);
        if without_lead {
            let leader = self.shared.election.status().leader;
            let leader = leader.unwrap_or_else(|| "nobody".to_owned());
            let counter = &self.shared.metrics.protected_without_lead;
            count(counter, [("direction", direction)]);
            tracing::warn!(%resource, direction, leader, "the leader did not act, this replica did in its place");
            let text = format!(
                "The leader ({leader}) did not act: scaled {direction} by a replica that does not lead"
            );
            self.event(Events::warning, at, "LeaderDidNotAct", &text);
        }
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
                OutageEnd::StillHeldDown => Events::warning,
                _ => Events::normal,
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
