//! Reports on one shoot: in its status, the log, metrics and Events.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, SubsecRound, Utc};
use prober_core::config::{Dependent, DependentId, ResourceRef};
use prober_core::lease::Grace;
use prober_core::moment::Moment;
use prober_core::options::ResolvedOptions;
use prober_core::plan::Direction;
use prober_core::refusal::Refusal;
use prober_core::replicas::PlannedWrite;
use prober_core::shoot::{DependentRecord, Environment, Reason, Report, Waits};

use super::facts::{describe_short, excluded, list};
use super::in_seconds;
use super::outage::{Outage, OutageEnd, SCHEMA, SeenDependent, Snapshot};
use super::outcome::ProbeOutcome;
use super::settings::ShownOption;
use super::shoot_statuses::{Failure, ShootStatuses, StatusHandle};
use super::waits::reason;
use super::why::Condition;
use crate::task::ShootContext;
use crate::owner::Standing;
use crate::shoot_client::error::{Cause, ProbeError, ProbeStep};

/// Reports in the shoot's status, the log, metrics and Events.
pub(crate) struct Reporter {
    status: StatusHandle,
}

impl Reporter {
    /// Called before each input, with what the shoot decides by.
    pub(crate) fn options(&self, env: &Environment<'_>) {
        if env.paused.is_some() {
            self.options_known(env.options);
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
                turn,
                without_lead,
            } => {
                let resource = context.resource(dependent);
                metrics.decided_and_written(direction, turn.to_std().unwrap_or_default());
                let took_s = took.map(|took| took.as_seconds_f64());
                context.written(resource, direction, &change, took_s);
                self.status.update(|status| {
                    if let Some(outage) = &mut status.outage {
                        let answered = took.is_some();
                        outage.wrote(resource, &change, !without_lead, answered, context.wall());
                    }
                });
                if without_lead {
                    context.written_without_lead(resource, direction);
                }
            }
            Report::NotScaled(at, direction, refusal) => {
                context.not_scaled(at, direction, &refusal);
                let resource = context.resource(at).clone();
                self.status
                    .update(|status| status.not_scaled.insert(resource, refusal.to_string()));
            }
            Report::Waits(at, direction, waits) => {
                if waits.reason == Reason::NotOwned {
                    metrics.owners.prevented.inc(direction);
                }
                context.waits(at, direction, waits);
            }
            Report::NotReady(at) => {
                metrics.not_ready.inc();
                tracing::warn!(resource = %context.resource(at), "resource is not ready yet, going on");
            }
            Report::LeftBehind(at) => context.left_behind(at),
            Report::KeepsChanging(at) => context.keeps_changing(at),
            Report::WouldWrite(at, direction, replicas_before, replicas) => {
                let resource = context.resource(at);
                metrics.dry_run_write(direction, resource);
                let direction = direction.into_str();
                tracing::info!(%resource, direction, replicas_before, replicas, "dry run: resource would be written");
            }
        }
    }

    pub(crate) fn probe_failed(&mut self, context: &ShootContext, error: &ProbeError) {
        let (stage, category) = (error.stage.into_str(), error.cause.category());
        let failed_probes = context.shoot.failures();
        context.shared.metrics.probes.failed(error);
        let failure = Failure {
            stage: stage.into(),
            category: category.into(),
            message: error.cause.to_string(),
            failed_probes,
            since: context.wall().trunc_subsecs(0),
        };
        let before = self.status.update(|status| {
            let before = status.failure.take();
            let since = before.as_ref().map_or(failure.since, |before| before.since);
            status.failure = Some(Failure { since, ..failure });
            before
        });
        if before.is_some_and(|before| before.category == category) {
            tracing::debug!(stage, category, error = %error.cause, failed_probes, "probe not complete");
        } else {
            tracing::warn!(stage, category, error = %error.cause, "probe not complete, nothing is concluded from it");
        }
    }

    /// Brings the status up to date; what has changed since decides whether an outage has ended.
    pub(crate) fn updated(&mut self, context: &ShootContext) {
        let (shoot, now) = (&context.shoot, context.shared.clock.now());
        let owner = context.owner();
        let ended = self.status.update(|status| {
            status.due = shoot.due();
            status.owner = owner;
            let intended = |dependent: &DependentRecord| {
                let after = dependent.intended()?.replicas();
                Some((dependent.resource.clone(), after))
            };
            status.intended = shoot.dependents().filter_map(intended).collect();
            let scaling = std::mem::replace(&mut status.scaling, shoot.scaling());
            if scaling != status.scaling {
                context.scaling_changed(scaling, status.scaling);
            }
            let fails = |resource: &ResourceRef| {
                let mut dependents = shoot.dependents();
                dependents.any(|dependent| dependent.resource == *resource && dependent.fails())
            };
            status.not_scaled.retain(|resource, _| fails(resource));
            let waits = |dependent: &DependentRecord| {
                Some((dependent.resource.clone(), dependent.waits()?))
            };
            status.waits = shoot.dependents().filter_map(waits).collect();
            // Before the first complete probe the shoot may be about to be created.
            if status.outcome.is_some() {
                context.follow_missing(&mut status.missing);
            }
            status.set_held_down(shoot.held_down(), now);
            let (verdict, outcome) = (shoot.verdict(), status.outcome.as_deref());
            status
                .history
                .follow(verdict, outcome, shoot.dependents(), now);
            let only_held_down = status.restores_only_held_down();
            let seen = |dependent| SeenDependent::new(dependent, only_held_down);
            let snapshot = Snapshot {
                namespace: &context.namespace,
                verdict,
                outcome,
                dependents: shoot.dependents().map(seen).collect(),
                waits: &status.waits,
                not_scaled: &status.not_scaled,
                history: &status.history,
                is_scaling: shoot.scaling().is_some(),
                paused: status.is_paused(),
                leads: context.shared.election.leads(),
                now,
                wall: context.wall(),
            };
            Outage::follow(&mut status.outage, &snapshot)
        });
        self.outage_ended(context, ended);
    }

    pub(crate) fn ended(&mut self, context: &ShootContext) {
        let ended = self
            .status
            .update(|status| Outage::probe_ended(&mut status.outage, context.wall()));
        self.outage_ended(context, ended);
        let cut_short = context.shoot.scaling().filter(|_| context.is_lost());
        if let Some(direction) = cut_short {
            context.shared.metrics.owners.prevented.inc(direction);
        }
        tracing::info!("probe ended");
    }
}

impl Reporter {
    pub(crate) fn new(statuses: &ShootStatuses, namespace: &str, first_probe: Moment) -> Self {
        Self {
            status: statuses.register(namespace.to_owned(), first_probe),
        }
    }

    /// Reports changes of the annotations. The last known ones stay shown while they are unknown.
    fn options_known(&self, options: ResolvedOptions) {
        let before = self.status.update(|status| status.options.replace(options));
        let (paused, from) = (options.pause.value, options.pause.from.into_str());
        if paused != before.is_some_and(|before| before.pause.value) {
            tracing::info!(
                paused,
                from,
                "pause annotation on the shoot's namespace, or on garden"
            );
        }
        let others = |options: ResolvedOptions| {
            let is_other = |option: &ShownOption| option.setting != "pause";
            list(ShownOption::overruled(&options).filter(is_other))
        };
        let settings = others(options);
        if settings != before.map(others).unwrap_or_default() {
            tracing::info!(
                settings,
                "settings by annotations on the shoot's namespace, or on garden"
            );
        }
    }

    fn probe_complete(&self, context: &ShootContext) {
        let Some(finding) = context.shoot.finding() else {
            return;
        };
        let now = context.shared.clock.now();
        let took = (now - context.probe_began).to_std().unwrap_or_default();
        context
            .shared
            .metrics
            .probes
            .complete(finding.nodes_known, took);
        let counted = context.shoot.counted_leases();
        let (before, failure) = self.status.update(|status| {
            let before = status.outcome.take();
            status.complete = now;
            status.outcome = Some(Arc::new(ProbeOutcome::new(finding, &counted)));
            (before, status.failure.take())
        });
        if failure.is_some() {
            tracing::info!("probes are complete again");
        }
        let (grace, before) = (
            finding.grace,
            before.map(|before| Arc::clone(&before.finding)),
        );
        if grace.is_too_short() && before.as_ref().is_none_or(|before| before.grace != grace) {
            context.grace_too_short(grace);
        }
        macro_rules! log {
            ($level:ident) => {
                tracing::$level!(
                    verdict = finding.verdict.into_str(),
                    candidates = finding.tally.candidates,
                    expired = finding.tally.expired,
                    undecided = finding.tally.undecided,
                    fraction = finding.fraction,
                    nodes_listed = finding.nodes_known,
                    excluded = excluded(&finding.excluded),
                    "probe complete"
                )
            };
        }
        match before {
            Some(before) if before.verdict == finding.verdict => log!(debug),
            _ => log!(info),
        }
    }

    /// Reports a whole outage in the log, and in an Event and metrics if this replica leads or has
    /// taken part.
    fn outage_ended(&self, context: &ShootContext, ended: Option<Box<Outage>>) {
        let Some(outage) = ended else { return };
        tracing::info!(
            schema = SCHEMA,
            end = outage.end.map(<&str>::from),
            blip = outage.is_blip(),
            seconds = outage.seconds(),
            acted = outage.acted,
            record = serde_json::to_string(&outage).unwrap_or_default(),
            "outage ended"
        );
        if context.shared.election.leads() || outage.acted.is_some() {
            context.shared.metrics.outages.ended(&outage);
            let (events, about) = (&context.shared.events, &context.namespace);
            match outage.end {
                Some(OutageEnd::Restored | OutageEnd::NothingHeldDown) => {
                    events.normal(about, "OutageEnded", &outage.sentence())
                }
                _ => events.warning(about, "OutageEnded", &outage.sentence()),
            }
        }
        self.status.keep(*outage);
    }
}

impl ShootContext {
    /// Reports that this replica has more or nothing to do now.
    fn scaling_changed(&self, before: Option<Direction>, now: Option<Direction>) {
        let verdict = self.shoot.verdict();
        if let Some(direction) = before {
            let is_over = verdict.is_some_and(|verdict| match direction {
                Direction::Up => !verdict.is_up(),
                Direction::Down => verdict.is_up(),
            });
            if is_over {
                self.shared.metrics.cancelled_scalings.inc(direction);
            }
            let direction = direction.into_str();
            let verdict = verdict.map_or("unknown", |verdict| verdict.into_str());
            tracing::info!(direction, verdict, cancelled = is_over, "scaling ended");
        }
        if let Some(direction) = now {
            tracing::info!(direction = direction.into_str(), "scaling begins");
        }
    }

    fn grace_too_short(&self, grace: Grace) {
        let [grace_s, expired_after_s] = [grace.period(), grace.threshold()].map(in_seconds);
        let message = describe_short(grace_s, expired_after_s);
        tracing::warn!(
            grace_s,
            expired_after_s,
            "grace is too short for the renewals of the nodes' leases, protection may come too late"
        );
        let events = &self.shared.events;
        events.warning(&self.namespace, "GraceTooShort", &message);
    }

    /// Brings up to date which dependents do not exist although they must, and reports new ones.
    fn follow_missing(&self, missing: &mut Vec<ResourceRef>) {
        let must = self.config.dependents.iter().zip(self.shoot.dependents());
        let is_missing = |(config, known): &(&Dependent, &DependentRecord)| {
            Condition::is_missing(config, known.state())
        };
        let now = must.filter(is_missing).map(|(_, known)| &known.resource);
        let now: Vec<&ResourceRef> = now.collect();
        for resource in now.iter().filter(|resource| !missing.contains(resource)) {
            tracing::warn!(%resource, "resource does not exist or cannot be scaled, so an outage would find it unprotected; the config does not call it optional");
        }
        *missing = now.into_iter().cloned().collect();
    }

    fn waits(&self, at: DependentId, direction: Direction, waits: Waits) {
        let until = waits.until.map(|until| {
            let clock = self.shared.clock;
            let left = until - clock.now();
            (clock.wall_now() + left).to_rfc3339_opts(SecondsFormat::Millis, true)
        });
        tracing::info!(
            resource = %self.resource(at),
            direction = direction.into_str(),
            waits_for = reason(waits.reason),
            until,
            "resource is not written yet"
        );
    }

    fn written(
        &self,
        resource: &ResourceRef,
        direction: Direction,
        change: &PlannedWrite,
        took_s: Option<f64>,
    ) {
        let (metrics, PlannedWrite { base, write }) = (&self.shared.metrics, change);
        metrics.scaled(direction, resource, "written");
        if write.used_default_replicas {
            metrics.restores_with_default_replicas.inc();
            tracing::warn!(%resource, memory = base.marks.replicas, "remembered replicas could not be used, scaled to 1");
        }
        tracing::info!(
            %resource,
            direction = direction.into_str(),
            replicas_before = base.replicas,
            replicas = change.replicas(),
            marker_removed = base.marks.held_down && !write.marks.held_down,
            took_s,
            "resource written"
        );
        let (before, events) = (base.replicas, &self.shared.events);
        let about = self.object(resource);
        match write.replicas {
            Some(0) => {
                let why = if self.is_lost() {
                    "the shoot belongs to another seed"
                } else {
                    "the nodes have lost the way to their API server"
                };
                events.warning(
                    &about,
                    "ScaledDown",
                    &format!("Scaled from {before} to 0: {why}"),
                );
            }
            Some(replicas) => events.normal(
                &about,
                "ScaledUp",
                &format!("Scaled from {before} to {replicas}: the nodes reach their API server"),
            ),
            None if !write.marks.held_down => events.normal(
                &about,
                "ProtectionRemoved",
                &format!("Annotations removed, replicas stay at {before}"),
            ),
            None => events.normal(
                &about,
                "ProtectionMarked",
                "Marked again as held down: somebody took the mark",
            ),
        }
    }

    /// Reports that the leader did not act.
    fn written_without_lead(&self, resource: &ResourceRef, direction: Direction) {
        let leader = self.shared.election.status().leader;
        let leader = leader.unwrap_or_else(|| "nobody".to_owned());
        self.shared.metrics.protected_without_lead.inc(direction);
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
        self.shared.metrics.scaled(direction, resource, category);
        let direction = direction.into_str();
        let message = format!("Cannot be scaled {direction}: {refusal}");
        self.warn(resource, "ScalingFailed", &message);
        tracing::error!(%resource, direction, category, error = %refusal, "resource cannot be scaled");
    }

    fn keeps_changing(&self, at: DependentId) {
        let resource = self.resource(at);
        tracing::warn!(%resource, "somebody else keeps writing the resource");
        let message = "Somebody else keeps writing it while it is being scaled";
        self.warn(resource, "KeepsChanging", message);
    }

    fn left_behind(&self, at: DependentId) {
        let resource = self.resource(at);
        self.shared.metrics.left_behind(resource);
        tracing::warn!(%resource, "resource could not be restored within its timeout, going on without it");
    }

    fn warn(&self, resource: &ResourceRef, reason: &'static str, message: &str) {
        let events = &self.shared.events;
        events.warning(&self.object(resource), reason, message);
    }

    /// A resource of this shoot, as Events name it.
    fn object(&self, resource: &ResourceRef) -> String {
        format!("{} {}/{}", resource.kind, self.namespace, resource.name)
    }

    fn resource(&self, dependent: DependentId) -> &ResourceRef {
        &self.config.dependent(dependent).resource
    }

    /// Standing by the owner record; `None` while the config has no check.
    fn owner(&self) -> Option<Standing> {
        let (owners, now) = (self.shared.owners(), self.shared.clock.now());
        Some(owners.status(&self.namespace, now)?.standing)
    }

    /// True if it belongs to another seed or may do so.
    fn is_lost(&self) -> bool {
        self.owner().is_some_and(Standing::is_lost)
    }

    fn wall(&self) -> DateTime<Utc> {
        self.shared.clock.wall(self.shared.clock.now())
    }
}

#[cfg(test)]
mod tests;
