//! What happens to one shoot, as it is reported: in its status, the log, metrics and Events.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use common::events::namespace_reference;
use k8s_openapi::api::core::v1::ObjectReference;
use prober_core::config::{DependentId, ResourceRef};
use prober_core::in_seconds;
use prober_core::judgement::Finding;
use prober_core::lease::Grace;
use prober_core::options::{ResolvedOptions, ShownOption};
use prober_core::outage::{Outage, OutageEnd, SCHEMA, Snapshot};
use prober_core::plan::Direction;
use prober_core::replicas::PlannedWrite;
use prober_core::shoot::{Environment, Report};

use super::facts::{describe_short, excluded, list};
use super::shoot_statuses::{Failure, StatusHandle};
use crate::driver::{Driver, Reporter};
use crate::owner_records::record::Ownership;
use crate::shoot_client::error::{Cause, ProbeError, ProbeStep};
use crate::write::WriteError;

/// Reports in the shoot's status, the log, metrics and Events.
pub(crate) struct AgentReporter {
    pub status: StatusHandle,
}

impl Reporter for AgentReporter {
    fn prepare(&mut self, env: &mut Environment<'_>) {
        if env.paused.is_some() {
            self.options_known(env.options);
        }
    }

    fn report(driver: &mut Driver<Self>, report: Report, refused: Option<WriteError>) {
        let metrics = &driver.shared.metrics;
        match report {
            Report::Found => driver.probe_complete(),
            // The probe was complete but for them.
            Report::MachinesUnknown => {
                let (stage, cause) = (ProbeStep::Machines, Cause::SeedUnknown("Machines"));
                Self::probe_failed(driver, &ProbeError { stage, cause });
            }
            Report::Begun(direction) => {
                tracing::info!(direction = direction.into_str(), "flow begins")
            }
            Report::Abandoned(direction) => driver.abandoned(direction),
            Report::Ended(direction, written, failed) => {
                let direction = direction.into_str();
                tracing::info!(direction, written, failed, "flow ended");
            }
            Report::Written {
                dependent,
                direction,
                change,
                took,
                turn,
                without_lead,
            } => {
                let resource = driver.resource(dependent);
                metrics.decided_and_written(direction, turn.to_std().unwrap_or_default());
                let took_s = took.map(|took| took.as_seconds_f64());
                driver.written(resource, direction, &change, took_s);
                driver.reporter.status.update(|status| {
                    if let Some(outage) = &mut status.outage {
                        outage.wrote(resource, &change, !without_lead, driver.wall());
                    }
                });
                if without_lead {
                    driver.written_without_lead(resource, direction);
                }
            }
            Report::NotScaled(at, direction, reason) => {
                let error = WriteError::not_scaled(reason, driver.resource(at), refused);
                driver.not_scaled(at, direction, &error);
            }
            Report::NotReady(at) => {
                metrics.not_ready.inc();
                tracing::warn!(resource = %driver.resource(at), "resource is not ready yet, going on");
            }
            Report::LeftBehind(at) => driver.left_behind(at),
            Report::KeepsChanging(at) => {
                let resource = driver.resource(at);
                tracing::warn!(%resource, "somebody else keeps writing the resource");
                let message = "Somebody else keeps writing it while it is being scaled".to_owned();
                driver.warn(resource, "", "KeepsChanging", message);
            }
            Report::NotOwner(direction) => {
                metrics.owners.prevented.inc(direction);
                tracing::warn!(
                    direction = direction.into_str(),
                    owner = driver.owner().map(<&str>::from),
                    "the owner record does not allow what would be written"
                );
            }
            Report::WouldWrite(at, direction, replicas_before, replicas) => {
                let resource = driver.resource(at);
                metrics.dry_run_write(direction, resource);
                let direction = direction.into_str();
                tracing::info!(%resource, direction, replicas_before, replicas, "dry run: resource would be written");
            }
        }
    }

    fn probe_failed(driver: &mut Driver<Self>, error: &ProbeError) {
        let (stage, category) = (error.stage.into_str(), error.cause.category());
        let failed_probes = driver.machine.failures();
        driver.shared.metrics.probes.failed(error);
        let failure = Failure {
            stage,
            category,
            message: error.cause.to_string(),
            failed_probes,
        };
        let before = driver
            .reporter
            .status
            .update(|status| status.failure.replace(failure));
        if before.is_some_and(|before| before.category == category) {
            tracing::debug!(stage, category, error = %error.cause, failed_probes, "probe not complete");
        } else {
            tracing::warn!(stage, category, error = %error.cause, "probe not complete, nothing is concluded from it");
        }
    }
}

impl AgentReporter {
    /// Reports which annotations have changed. While they are not known the last ones stay shown.
    fn options_known(&self, options: ResolvedOptions) {
        let before = self.status.update(|status| {
            status.paused = options.pause.value;
            status.options.replace(options)
        });
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
            list(options.overruled().filter(is_other))
        };
        let settings = others(options);
        if settings != before.map(others).unwrap_or_default() {
            tracing::info!(
                settings,
                "settings by annotations on the shoot's namespace, or on garden"
            );
        }
    }
}

impl Driver<AgentReporter> {
    /// Brings the status up to date; what has changed since decides whether an outage has ended.
    pub(crate) fn update_status(&self) {
        let (machine, now) = (&self.machine, self.shared.clock.now());
        let owner = self.owner();
        let ended = self.reporter.status.update(|status| {
            status.due = machine.due();
            status.owner = owner;
            status.intended = machine.intended().to_vec();
            status.scaling = machine.scaling();
            status.set_held_down(machine.held_down(), now);
            let snapshot = Snapshot {
                namespace: &self.namespace,
                shoot: machine,
                paused: status.paused,
                now,
                wall: self.wall(),
            };
            Outage::follow(&mut status.outage, &snapshot)
        });
        self.outage_ended(ended);
    }

    /// The shoot is not probed any more.
    pub(crate) fn probe_ended(&self) {
        let ended = self
            .reporter
            .status
            .update(|status| Outage::probe_ended(&mut status.outage, self.wall()));
        self.outage_ended(ended);
        tracing::info!("probe ended");
    }

    fn probe_complete(&self) {
        let Some(finding) = self.machine.finding() else {
            return;
        };
        let now = self.shared.clock.now();
        let took = (now - self.probe_began).to_std().unwrap_or_default();
        self.shared
            .metrics
            .probes
            .complete(finding.nodes_known, took);
        let (before, failure) = self.reporter.status.update(|status| {
            status.complete = now;
            let before = status.finding.replace(Arc::clone(finding));
            (before, status.failure.take())
        });
        if failure.is_some() {
            tracing::info!("probes are complete again");
        }
        let zones = lost_zones(finding);
        if !zones.is_empty() && before.as_deref().map(lost_zones).as_ref() != Some(&zones) {
            tracing::warn!(zones, "zones are lost, nothing is scaled for them");
        }
        let grace = finding.grace;
        if grace.is_too_short() && before.as_ref().is_none_or(|before| before.grace != grace) {
            self.grace_too_short(grace);
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
                    excluded = excluded(finding),
                    "probe complete"
                )
            };
        }
        match before {
            Some(before) if before.verdict == finding.verdict => log!(debug),
            _ => log!(info),
        }
    }

    fn grace_too_short(&self, grace: Grace) {
        let message = describe_short(grace);
        tracing::warn!(
            grace_s = in_seconds(grace.period()),
            expired_after_s = in_seconds(grace.threshold()),
            "grace is too short for the renewals of the nodes' leases, protection may come too late"
        );
        let about = namespace_reference(&self.namespace);
        self.shared.events.warning(&about, "GraceTooShort", message);
    }

    fn abandoned(&self, direction: Direction) {
        let metrics = &self.shared.metrics;
        metrics.abandoned_flows.inc(direction);
        if self.machine.has_stood_down() {
            metrics.owners.prevented.inc(direction);
        }
        let (finding, paused) = self
            .reporter
            .status
            .update(|status| (status.finding.clone(), status.paused));
        tracing::info!(
            direction = direction.into_str(),
            verdict = finding.map_or("unknown", |finding| finding.verdict.into_str()),
            paused,
            owner = self.owner().map(<&str>::from),
            "flow abandoned"
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
            metrics.memory_fallbacks.inc();
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
        let about = self.reference(resource, &base.uid);
        match write.replicas {
            Some(0) => {
                let why = if self.machine.has_stood_down() {
                    "the shoot belongs to another seed"
                } else {
                    "the nodes have lost the way to their API server"
                };
                events.warning(
                    &about,
                    "ScaledDown",
                    format!("Scaled from {before} to 0: {why}"),
                );
            }
            Some(replicas) => events.normal(
                &about,
                "ScaledUp",
                format!("Scaled from {before} to {replicas}: the nodes reach their API server"),
            ),
            None if !write.marks.held_down => events.normal(
                &about,
                "ProtectionRemoved",
                format!("Annotations removed, replicas stay at {before}"),
            ),
            None => events.normal(
                &about,
                "ProtectionMarked",
                "Marked again as held down: somebody took the mark".to_owned(),
            ),
        }
    }

    /// A leader that did not act is reported as such (D-50).
    fn written_without_lead(&self, resource: &ResourceRef, direction: Direction) {
        let leader = self.shared.role.status().leader;
        let leader = leader.unwrap_or_else(|| "nobody".to_owned());
        self.shared.metrics.protected_without_lead.inc(direction);
        tracing::warn!(%resource, direction = direction.into_str(), leader, "the leader did not act, this replica did in its place");
        let done = match direction {
            Direction::Down => "taken to 0",
            Direction::Up => "brought back",
        };
        let message =
            format!("The leader ({leader}) did not act: {done} by a replica that does not lead");
        self.warn(resource, "", "LeaderDidNotAct", message);
    }

    fn not_scaled(&self, at: DependentId, direction: Direction, error: &WriteError) {
        let (resource, category) = (self.resource(at), error.category());
        self.shared.metrics.scaled(direction, resource, category);
        let observed = self.machine.dependent(at).observed();
        let uid = observed.map_or("", |observed| &observed.uid);
        let direction = direction.into_str();
        let message = format!("Cannot be scaled {direction}: {error}");
        self.warn(resource, uid, "ScalingFailed", message);
        tracing::error!(%resource, direction, category, %error, "resource cannot be scaled");
    }

    fn left_behind(&self, at: DependentId) {
        let resource = self.resource(at);
        self.shared.metrics.left_behind(resource);
        tracing::warn!(%resource, "resource could not be restored within its timeout, going on without it");
    }

    /// Reports how an outage went: the whole of it in the log, and in an Event and metrics if this
    /// replica leads or has taken part.
    fn outage_ended(&self, ended: Option<Box<Outage>>) {
        let Some(outage) = ended else { return };
        tracing::info!(
            schema = SCHEMA,
            end = outage.end.map(<&str>::from),
            blip = outage.is_blip(),
            seconds = outage.seconds(),
            acted = outage.acted(),
            record = serde_json::to_string(&outage).unwrap_or_default(),
            "outage ended"
        );
        if self.shared.role.leads() || outage.acted().is_some() {
            self.shared.metrics.outages.ended(&outage);
            let (events, about) = (&self.shared.events, namespace_reference(&self.namespace));
            match outage.end {
                Some(OutageEnd::Restored | OutageEnd::NothingHeldDown) => {
                    events.normal(&about, "OutageEnded", outage.sentence())
                }
                _ => events.warning(&about, "OutageEnded", outage.sentence()),
            }
        }
        self.reporter.status.keep(*outage);
    }

    /// An Event at the resource itself; the UID is empty where it is not known.
    fn warn(&self, resource: &ResourceRef, uid: &str, reason: &'static str, message: String) {
        let about = self.reference(resource, uid);
        self.shared.events.warning(&about, reason, message);
    }

    fn reference(&self, resource: &ResourceRef, uid: &str) -> ObjectReference {
        ObjectReference {
            api_version: Some(resource.api_version.clone()),
            kind: Some(resource.kind.clone()),
            namespace: Some(self.namespace.clone()),
            name: Some(resource.name.clone()),
            uid: (!uid.is_empty()).then(|| uid.to_owned()),
            ..ObjectReference::default()
        }
    }

    fn resource(&self, dependent: DependentId) -> &ResourceRef {
        &self.config.dependent(dependent).resource
    }

    /// What the owner record says; none while none is configured.
    fn owner(&self) -> Option<Ownership> {
        let (check, owners) = (self.config.owner_check.as_ref()?, self.shared.owners());
        Some(owners.standing(&self.namespace, check, self.shared.clock.now()))
    }

    fn wall(&self) -> DateTime<Utc> {
        self.shared.clock.wall(self.shared.clock.now())
    }
}

fn lost_zones(finding: &Finding) -> String {
    list(finding.lost_zones.iter().map(|lost| &lost.zone))
}
