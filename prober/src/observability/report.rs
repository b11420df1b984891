//! Reports on one shoot: in its view, the log, metrics and Events. Its task owns the reporter.

use std::collections::BTreeMap;
use std::iter::zip;

use chrono::{DateTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use prober_core::config::{Config, DependentId, ResourceRef};
use prober_core::lease::Grace;
use prober_core::moment::Moment;
use prober_core::plan::Direction;
use prober_core::refusal::Refusal;
use prober_core::replicas::PlannedWrite;
use prober_core::shoot::{DependentRecord, Environment, Reason, Report, Waits};
use prober_core::verdict::Verdict;

use super::facts::{describe_short, list, waits_for};
use super::in_seconds;
use super::outage::{Judged, Outage, OutageEnd, Snapshot};
use super::shoot_statuses::{ShootStatuses, StatusHandle};
use super::view::{Failure, Found, ShootView, ShownWait};
use crate::shoot_client::error::{Cause, ProbeError, ProbeStep};
use crate::task::ShootContext;

pub(crate) struct Reporter {
    handle: StatusHandle,
    outage: Option<Outage>,
    scaling: Option<Direction>,
    grace: Option<Grace>,
}

impl Reporter {
    pub(crate) fn new(
        statuses: &ShootStatuses,
        namespace: &str,
        config: &Config,
        first_probe: Moment,
        decree: Option<Verdict>,
    ) -> Self {
        Self {
            handle: statuses.register(namespace, config, first_probe, decree),
            outage: None,
            scaling: None,
            grace: None,
        }
    }

    /// Called before each input. Settings that were known stay shown while they are not.
    pub(crate) fn observe(&self, env: &Environment) {
        if env.paused.is_some() {
            self.handle.update(|view| {
                if view.set_options(env.options) {
                    let settings = view.settings.iter().filter(|option| option.is_overruled());
                    let settings = list(settings);
                    tracing::info!(
                        settings,
                        "settings by annotations on the shoot's namespace, or on garden"
                    );
                }
            });
        }
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
                took,
                since_due,
                without_lead,
            } => {
                self.outage.iter_mut().for_each(|outage| outage.writes += 1);
                context.written(dependent, direction, &change, took, since_due);
                if without_lead {
                    context.written_without_lead(dependent, direction);
                }
            }
            Report::NotScaled(at, direction, refusal) => {
                let cause = refusal.to_string();
                self.handle.update(|view| {
                    let mut shown = view.dependents.iter_mut().skip(at.0);
                    shown.next().map(|shown| shown.not_scaled = Some(cause))
                });
                context.not_scaled(at, direction, &refusal);
            }
            Report::Waits(at, direction, waits) => context.waits(at, direction, waits),
            Report::NotReady(at) => context.not_ready(at),
            Report::LeftBehind(at) => context.left_behind(at),
            Report::KeepsChanging(at) => context.keeps_changing(at),
            Report::WouldWrite(at, direction, before, after) => {
                context.would_write(at, direction, before, after);
            }
        }
    }

    fn probe_complete(&mut self, context: &ShootContext) {
        let (None, Some(finding)) = (context.decree, context.shoot.finding()) else {
            return;
        };
        let now = context.shared.clock.now();
        let (stage, metrics) = (["leases", "nodes"], &context.shared.metrics);
        metrics
            .probes
            .inc([stage[usize::from(finding.nodes_known)], "complete"]);
        metrics
            .probe_seconds
            .observe(in_seconds(now - context.probe_began));
        let found = Found::new(finding, context.shoot.counted_leases());
        let (before, failure) = self.handle.update_probe(|probe| {
            probe.complete = now;
            let before = probe.found.replace(found).map(|found| found.verdict);
            (before, probe.failure.take())
        });
        if failure.is_some() {
            tracing::info!("probes are complete again");
        }
        if self.grace.replace(finding.grace) != Some(finding.grace) && finding.grace.is_too_short()
        {
            context.grace_too_short(finding.grace);
        }
        let verdict = finding.verdict.into_str();
        if before == Some(finding.verdict) {
            return tracing::debug!(verdict, "probe complete");
        }
        let excluded = finding.excluded.iter();
        tracing::info!(
            verdict,
            candidates = finding.tally.candidates,
            expired = finding.tally.expired,
            undecided = finding.tally.undecided,
            fraction = finding.fraction,
            nodes_listed = finding.nodes_known,
            excluded = list(excluded.map(|(reason, count)| format!("{reason}: {count}"))),
            "probe complete"
        );
    }

    pub(crate) fn probe_failed(&self, context: &ShootContext, error: &ProbeError) {
        let (stage, category) = (error.stage.into_str(), error.cause.category());
        let failed_probes = context.shoot.failures();
        let metrics = &context.shared.metrics;
        metrics.probes.inc([stage, category]);
        if matches!(error.cause, Cause::Throttled { .. }) {
            metrics.throttles.inc();
        }
        let mut failure = Failure {
            stage: stage.into(),
            category: category.into(),
            message: error.cause.to_string(),
            failed_probes,
            since: context.now().trunc_subsecs(0),
        };
        let before = self.handle.update_probe(|probe| {
            let before = probe.failure.take();
            failure.since = before.as_ref().map_or(failure.since, |before| before.since);
            probe.failure = Some(failure);
            before
        });
        if before.is_some_and(|before| before.category == category) {
            tracing::debug!(stage, category, error = %error.cause, failed_probes, "probe not complete");
        } else {
            tracing::warn!(stage, category, error = %error.cause, "probe not complete, nothing is concluded from it");
        }
    }

    /// Called after each input and its reports: publishes the shoot, and follows its outage.
    pub(crate) fn updated(&mut self, context: &ShootContext) {
        let (shoot, now) = (&context.shoot, context.now());
        let (paused, only_held_down) = self.handle.update(|view| {
            context.publish(view);
            let only_held_down = view.is_set("restoreOnlyHeldDown");
            (view.paused == Some(true), only_held_down)
        });
        let before = std::mem::replace(&mut self.scaling, shoot.scaling());
        if let Some(direction) = before.filter(|_| before != self.scaling) {
            context.scaling_ended(direction, paused);
        }
        let is_down = shoot.verdict() == Some(Verdict::ScaleDown);
        let is_held = |known: &DependentRecord| known.stays_held_down(only_held_down);
        let is_calm = self.outage.is_none() && !is_down && !shoot.dependents().any(is_held);
        if is_calm || context.decree.is_some() {
            return;
        }
        let dependents = shoot.dependents();
        let dependents = dependents.map(|known| (&known.resource, is_held(known)));
        let tally = shoot
            .finding()
            .map(|finding| finding.tally)
            .unwrap_or_default();
        let snapshot = Snapshot {
            namespace: &context.namespace,
            verdict: shoot.verdict(),
            judged: Judged {
                candidates: tally.candidates,
                expired: tally.expired,
            },
            dependents: dependents.collect(),
            is_scaling: self.scaling.is_some(),
            paused,
            now,
        };
        let ended = Outage::follow(&mut self.outage, &snapshot);
        self.outage_ended(context, ended);
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
        let changes: Vec<_> = self.handle.update(|view| {
            let shown = view.dependents.iter_mut().enumerate();
            let changes = shown.map(|(at, shown)| {
                let now = refused.remove(&DependentId(at));
                let before = std::mem::replace(&mut shown.refused, now.clone());
                (DependentId(at), before, now)
            });
            changes.filter(|(_, before, now)| before != now).collect()
        });
        for (id, before, now) in changes {
            let resource = context.resource(id);
            match now {
                Some(words) => {
                    tracing::warn!(%resource, words, "protection would be refused in an outage");
                    if before.is_none() {
                        let message = format!("In an outage it would be refused: {words}");
                        context.warn(resource, "ProtectionWouldBeRefused", &message);
                    }
                }
                None if is_rehearsed => {
                    tracing::info!(%resource, "protection is not known to be refused any more");
                }
                None => {}
            }
        }
    }

    /// Called once nobody probes the shoot any more.
    pub(crate) fn ended(&mut self, context: &ShootContext) {
        let ended = Outage::probe_ended(&mut self.outage, context.now());
        self.outage_ended(context, ended);
        tracing::info!("probe ended");
    }

    /// Reports an outage in the log, and in an Event and metrics if this replica leads or has taken
    /// part.
    fn outage_ended(&self, context: &ShootContext, ended: Option<Outage>) {
        let Some(outage) = ended else { return };
        let (end, seconds, text) = (outage.end, outage.seconds(), outage.sentence());
        let record = serde_json::to_string(&outage).unwrap_or_default();
        tracing::info!(end = end.into_str(), seconds, record, "outage ended");
        let shared = &context.shared;
        if shared.election.leads() || outage.writes > 0 {
            shared.metrics.outages.inc([end.into_str()]);
            shared.metrics.outage_seconds.observe(seconds);
            let (events, about) = (&shared.events, &context.namespace);
            match end {
                OutageEnd::Restored | OutageEnd::NothingHeldDown => {
                    events.normal(about, "OutageEnded", &text);
                }
                _ => events.warning(about, "OutageEnded", &text),
            }
        }
        self.handle.keep(outage);
    }
}

impl ShootContext {
    /// Shows the shoot as it is now.
    fn publish(&self, view: &mut ShootView) {
        let (shoot, now) = (&self.shoot, self.now().trunc_subsecs(0));
        if let Some(probe) = &mut view.probe {
            probe.due = shoot.next_probe();
            probe.scaling = shoot.scaling().map(|direction| direction.into_str().into());
        }
        let dependents = zip(&self.config.dependents, shoot.dependents());
        for (shown, (config, known)) in zip(&mut view.dependents, dependents) {
            if !known.fails() {
                shown.not_scaled = None;
            }
            shown.show(config, known.state());
            let since = shown.since.unwrap_or(now);
            shown.since = known.is_held_down().then_some(since);
            shown.waits = known.waits().map(|waits| ShownWait {
                name: waits.reason.into_str().into(),
                reason: waits_for(waits.reason).into(),
                until: waits.until.map(|until| self.wall(until).trunc_subsecs(0)),
            });
            shown.would_become = known.intended().map(PlannedWrite::replicas);
        }
    }

    /// Reports a scaling that ended before all was done.
    fn scaling_ended(&self, direction: Direction, paused: bool) {
        let verdict = self.shoot.verdict();
        let is_up = direction == Direction::Up;
        if paused || verdict.is_some_and(|verdict| verdict.is_up() != is_up) {
            self.shared
                .metrics
                .cancelled_scalings
                .inc([direction.into_str()]);
            let (direction, verdict) = (direction.into_str(), verdict.map(<&str>::from));
            tracing::info!(direction, verdict, paused, "scaling cancelled");
        }
    }

    fn grace_too_short(&self, grace: Grace) {
        let [grace_s, expired_after_s] = [grace.period(), grace.threshold()].map(in_seconds);
        tracing::warn!(
            grace_s,
            expired_after_s,
            "grace is too short for the renewals of the nodes' leases, protection may come too late"
        );
        let message = describe_short(grace_s, expired_after_s);
        let events = &self.shared.events;
        events.warning(&self.namespace, "GraceTooShort", &message);
    }

    fn waits(&self, at: DependentId, direction: Direction, waits: Waits) {
        if waits.reason == Reason::NotOwned {
            self.shared
                .metrics
                .owner_prevented
                .inc([direction.into_str()]);
        }
        let until = waits.until.map(|until| self.wall(until));
        tracing::info!(
            resource = %self.resource(at),
            direction = direction.into_str(),
            waits_for = waits_for(waits.reason),
            until = until.map(|until| until.to_rfc3339_opts(SecondsFormat::Millis, true)),
            "resource is not written yet"
        );
    }

    fn written(
        &self,
        at: DependentId,
        direction: Direction,
        change: &PlannedWrite,
        took: Option<TimeDelta>,
        since_due: TimeDelta,
    ) {
        let (resource, metrics) = (self.resource(at), &self.shared.metrics);
        let PlannedWrite { base, write } = change;
        let (before, after, direction) = (base.replicas, change.replicas(), direction.into_str());
        self.count_write(resource, direction, "written");
        let turns = metrics
            .decision_to_write
            .get_or_create(&[("direction", direction.to_owned())]);
        turns.observe(in_seconds(since_due));
        if write.used_default_replicas {
            metrics.default_replicas.inc();
            tracing::warn!(%resource, memory = base.marks.replicas, "remembered replicas could not be used, scaled to 1");
        }
        tracing::info!(
            %resource,
            direction,
            replicas_before = before,
            replicas = after,
            marker_removed = base.marks.held_down && !write.marks.held_down,
            took_s = took.map(in_seconds),
            "resource written"
        );
        let (events, about) = (&self.shared.events, self.object(resource));
        match write.replicas {
            Some(0) => {
                let why = match self.decree {
                    Some(_) => "the shoot belongs to another seed",
                    None => "the nodes have lost the way to their API server",
                };
                let text = format!("Scaled from {before} to 0: {why}");
                events.warning(&about, "ScaledDown", &text);
            }
            Some(_) => {
                let text =
                    format!("Scaled from {before} to {after}: the nodes reach their API server");
                events.normal(&about, "ScaledUp", &text);
            }
            None if !write.marks.held_down => {
                let text = format!("Annotations removed, replicas stay at {before}");
                events.normal(&about, "ProtectionRemoved", &text);
            }
            None => {
                let text = "Marked again as held down: somebody took the mark";
                events.normal(&about, "ProtectionMarked", text);
            }
        }
    }

    /// Reports that the leader did not act.
    fn written_without_lead(&self, at: DependentId, direction: Direction) {
        let resource = self.resource(at);
        let leader = self.shared.election.status().leader;
        let leader = leader.unwrap_or_else(|| "nobody".to_owned());
        self.shared
            .metrics
            .protected_without_lead
            .inc([direction.into_str()]);
        tracing::warn!(%resource, direction = direction.into_str(), leader, "the leader did not act, this replica did in its place");
        let done = match direction {
            Direction::Down => "taken to 0",
            Direction::Up => "brought back",
        };
        let message =
            format!("The leader ({leader}) did not act: {done} by a replica that does not lead");
        self.warn(resource, "LeaderDidNotAct", &message);
    }

    fn not_scaled(&self, at: DependentId, direction: Direction, refusal: &Refusal) {
        let (resource, category) = (self.resource(at), refusal.into_str());
        let direction = direction.into_str();
        self.count_write(resource, direction, category);
        tracing::error!(%resource, direction, category, error = %refusal, "resource cannot be scaled");
        let text = format!("Cannot be scaled {direction}: {refusal}");
        self.warn(resource, "ScalingFailed", &text);
    }

    fn not_ready(&self, at: DependentId) {
        self.shared.metrics.not_ready.inc();
        tracing::warn!(resource = %self.resource(at), "resource is not ready yet, going on");
    }

    fn left_behind(&self, at: DependentId) {
        let resource = self.resource(at);
        let labels = [&*resource.kind, &*resource.name];
        self.shared.metrics.left_behind.inc(labels);
        tracing::warn!(%resource, "resource could not be restored within its timeout, going on without it");
    }

    fn keeps_changing(&self, at: DependentId) {
        let resource = self.resource(at);
        tracing::warn!(%resource, "somebody else keeps writing the resource");
        let text = "Somebody else keeps writing it while it is being scaled";
        self.warn(resource, "KeepsChanging", text);
    }

    fn would_write(&self, at: DependentId, direction: Direction, before: i32, after: i32) {
        let (resource, direction) = (self.resource(at), direction.into_str());
        let labels = [direction, &resource.kind, &resource.name];
        self.shared.metrics.dry_run_writes.inc(labels);
        tracing::info!(%resource, direction, replicas_before = before, replicas = after, "dry run: resource would be written");
    }

    /// A resource was written, or could not be: `result` is `written` or the error's category.
    fn count_write(&self, resource: &ResourceRef, direction: &str, result: &str) {
        let labels = [direction, &resource.kind, &resource.name, result];
        self.shared.metrics.scale_operations.inc(labels);
    }

    fn warn(&self, resource: &ResourceRef, reason: &'static str, text: &str) {
        let events = &self.shared.events;
        events.warning(&self.object(resource), reason, text);
    }

    /// A resource of this shoot, as Events name it.
    fn object(&self, resource: &ResourceRef) -> String {
        format!("{} {}/{}", resource.kind, self.namespace, resource.name)
    }

    fn resource(&self, dependent: DependentId) -> &ResourceRef {
        &self.config.dependent(dependent).resource
    }

    fn now(&self) -> DateTime<Utc> {
        self.wall(self.shared.clock.now())
    }

    fn wall(&self, moment: Moment) -> DateTime<Utc> {
        self.shared.clock.wall(moment)
    }
}

#[cfg(test)]
mod tests;
