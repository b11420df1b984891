//! What a shoot's task reports: in its status, the log, metrics and Events.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use common::events::namespace_reference;
use prober_core::config::ResourceRef;
use prober_core::judgement::Finding;
use prober_core::options::ResolvedOptions;
use prober_core::outage::{End, Outage, SCHEMA, Snapshot};
use prober_core::owner::Standing;
use prober_core::plan::Direction;
use prober_core::replicas::Change;
use prober_core::shoot::{Environment, Reason, Report};

use super::AgentReporter;
use crate::driver::{Driver, Reporter};
use crate::observability::shoot_statuses::Failure;
use crate::shoot_client::error::{Cause, ProbeError, Stage};
use crate::write::WriteError;

impl Reporter for AgentReporter {
    /// Logs what annotations have changed. While they are not known what they said last is shown.
    fn prepare(&mut self, env: &mut Environment<'_>) {
        if env.paused.is_none() {
            return;
        }
        let options = env.options;
        let before = self.status.update(|status| {
            status.paused = options.pause.value;
            status.options.replace(options)
        });
        if before == Some(options) {
            return;
        }
        let was_paused = before.is_some_and(|before| before.pause.value);
        if options.pause.value != was_paused {
            let from = options.pause.from.into_str();
            tracing::info!(
                paused = !was_paused,
                from,
                "pause annotation on the shoot's namespace, or on garden"
            );
        }
        let others = |options: &ResolvedOptions| {
            let shown = options
                .overruled()
                .filter(|shown| shown.setting != "pause")
                .map(|shown| shown.to_string());
            shown.collect::<Vec<_>>().join(", ")
        };
        let (before, settings) = (
            before.as_ref().map(others).unwrap_or_default(),
            others(&options),
        );
        if settings != before {
            tracing::info!(
                settings,
                "settings by annotations on the shoot's namespace, or on garden"
            );
        }
    }

    fn report(driver: &mut Driver<Self>, report: Report) {
        driver.report(report);
    }

    fn probe_failed(driver: &mut Driver<Self>, error: &ProbeError) {
        driver.report_failure(error);
    }
}

impl Driver<AgentReporter> {
    pub fn update_status(&self) {
        let (machine, now) = (&self.machine, self.shared.clock.now());
        let standing = self.owner_standing();
        let ended = self.reporter.status.update(|status| {
            status.due = machine.due();
            status.owner = standing;
            status.intended = machine.intended().to_vec();
            status.scaling = machine.scaling();
            status.set_held_down(machine.held_down(), now);
            let (namespace, paused, wall) = (&*self.namespace, status.paused, self.wall());
            Outage::follow(
                &mut status.outage,
                &Snapshot {
                    namespace,
                    shoot: machine,
                    paused,
                    now,
                    wall,
                },
            )
        });
        self.report_outage(ended);
    }

    pub(super) fn wall(&self) -> DateTime<Utc> {
        self.shared.clock.wall(self.shared.clock.now())
    }

    /// Says how an outage went: the whole of it in the log, and in an Event and metrics if this
    /// replica leads or has taken part.
    pub(super) fn report_outage(&self, ended: Option<Box<Outage>>) {
        let Some(outage) = ended else { return };
        let (end, sentence, blip) = (
            outage.end.map(<&str>::from),
            outage.sentence(),
            outage.is_blip(),
        );
        let record = serde_json::to_string(&outage).unwrap_or_default();
        tracing::info!(
            schema = SCHEMA,
            end,
            blip,
            seconds = outage.seconds(),
            acted = outage.acted(),
            record,
            "outage ended"
        );
        if self.shared.role.leads() || outage.acted().is_some() {
            self.shared.metrics.outage_ended(&outage);
            let about = namespace_reference(&self.namespace);
            match outage.end {
                Some(End::Restored | End::NothingHeldDown) => {
                    self.shared.events.normal(&about, "OutageEnded", sentence)
                }
                _ => self.shared.events.warning(&about, "OutageEnded", sentence),
            }
        }
        self.reporter.status.keep(*outage);
    }

    /// What the owner record says; none while none is configured.
    pub(super) fn owner_standing(&self) -> Option<Standing> {
        let check = self.config.owner_check.as_ref()?;
        Some(
            self.shared
                .owners()
                .standing(&self.namespace, check, self.shared.clock.now()),
        )
    }

    fn report(&mut self, report: Report) {
        let metrics = &self.shared.metrics;
        match report {
            Report::Found => self.report_finding(),
            // The probe was complete but for them.
            Report::MachinesUnknown => {
                self.report_failure(&ProbeError {
                    stage: Stage::Machines,
                    cause: Cause::SeedUnknown("Machines"),
                });
            }
            Report::Begun(direction) => {
                tracing::info!(direction = direction.into_str(), "flow begins");
            }
            Report::Abandoned(direction) => {
                metrics.flow_abandoned(direction);
                if self.machine.has_stood_down() {
                    metrics.owner_prevented(direction);
                }
                let (verdict, paused) = self.reporter.status.update(|status| {
                    (
                        status.finding.as_ref().map(|found| found.verdict),
                        status.paused,
                    )
                });
                let verdict = verdict.map_or("unknown", <&str>::from);
                let owner = self.owner_standing().map(<&str>::from);
                tracing::info!(
                    direction = direction.into_str(),
                    verdict,
                    paused,
                    owner,
                    "flow abandoned"
                );
            }
            Report::Ended(direction, written, failed) => {
                tracing::info!(
                    direction = direction.into_str(),
                    written,
                    failed,
                    "flow ended"
                );
            }
            Report::Written {
                dependent,
                direction,
                change,
                took,
                turn,
                without_lead,
            } => {
                let resource = &self.config.dependents[dependent].resource;
                metrics.scaled(direction, resource, "written");
                metrics.decided_and_written(direction, turn.to_std().unwrap_or_default());
                self.report_write(
                    resource,
                    direction,
                    &change,
                    took.map(|took| took.as_seconds_f64()),
                );
                let wrote = |outage: &mut Box<Outage>| {
                    outage.wrote(resource, &change, !without_lead, self.wall())
                };
                self.reporter
                    .status
                    .update(|status| status.outage.as_mut().map(wrote));
                if without_lead {
                    self.report_without_lead(resource, direction);
                }
            }
            Report::NotScaled(at, direction, reason) => {
                self.report_not_scaled(at, direction, reason)
            }
            Report::NotReady(at) => {
                metrics.not_ready.inc();
                tracing::warn!(resource = %self.config.dependents[at].resource, "resource is not ready yet, going on");
            }
            Report::KeepsChanging(at) => {
                let resource = &self.config.dependents[at].resource;
                tracing::warn!(resource = %resource, "somebody else keeps writing the resource");
                let message = "Somebody else keeps writing it while it is being scaled".to_owned();
                self.publish_warning(resource, "", "KeepsChanging", message);
            }
            Report::NotOwner(direction) => {
                metrics.owner_prevented(direction);
                let owner = self.owner_standing().map(<&str>::from);
                tracing::warn!(
                    direction = direction.into_str(),
                    owner,
                    "the owner record does not allow what would be written"
                );
            }
            Report::WouldWrite(at, direction, replicas_before, replicas) => {
                let resource = &self.config.dependents[at].resource;
                metrics.dry_run_write(direction, resource);
                let direction = direction.into_str();
                tracing::info!(%resource, direction, replicas_before, replicas, "dry run: resource would be written");
            }
        }
    }

    fn report_finding(&self) {
        let Some(finding) = self.machine.finding().map(Arc::clone) else {
            return;
        };
        let now = self.shared.clock.now();
        self.shared.metrics.probe_complete(
            finding.nodes_known,
            (now - self.probe_began).to_std().unwrap_or_default(),
        );
        let (before, failure) = self.reporter.status.update(|status| {
            status.complete = now;
            (
                status.finding.replace(Arc::clone(&finding)),
                status.failure.take(),
            )
        });
        if failure.is_some() {
            tracing::info!("probes are complete again");
        }
        let changed = before
            .as_ref()
            .is_none_or(|before| before.verdict != finding.verdict);
        self.report_zones(before.as_deref(), &finding);
        macro_rules! say {
            ($level:ident) => {
                tracing::$level!(
                    verdict = finding.verdict.into_str(),
                    candidates = finding.tally.candidates,
                    expired = finding.tally.expired,
                    undecided = finding.tally.undecided,
                    fraction = finding.fraction,
                    nodes_listed = finding.nodes_known,
                    excluded = words(&finding.excluded),
                    "probe complete"
                )
            };
        }
        if changed { say!(info) } else { say!(debug) }
    }

    pub(super) fn report_failure(&self, error: &ProbeError) {
        let (stage, category, failed_probes) = (
            error.stage.into_str(),
            error.cause.category(),
            self.machine.failures(),
        );
        self.shared.metrics.probe_failed(error);
        let failure = Failure {
            stage,
            category,
            message: error.cause.to_string(),
            failed_probes,
        };
        let before = self
            .reporter
            .status
            .update(|status| status.failure.replace(failure));
        if before.is_some_and(|before| before.category == category) {
            tracing::debug!(stage, category, error = %error.cause, failed_probes, "probe not complete");
        } else {
            tracing::warn!(stage, category, error = %error.cause, "probe not complete, nothing is concluded from it");
        }
    }

    fn report_zones(&self, before: Option<&Finding>, finding: &Finding) {
        let names = |finding: &Finding| {
            finding
                .lost_zones
                .iter()
                .map(|lost| lost.zone.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let (before, zones) = (before.map(names).unwrap_or_default(), names(finding));
        if before == zones {
            return;
        }
        if !zones.is_empty() {
            tracing::warn!(zones, "zones are lost, nothing is scaled for them");
        }
    }

    fn report_write(
        &self,
        resource: &ResourceRef,
        direction: Direction,
        change: &Change,
        took_s: Option<f64>,
    ) {
        let Change { base, write } = change;
        if write.used_default_replicas {
            self.shared.metrics.memory_fallbacks.inc();
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
        self.publish_write(resource, change);
    }

    /// A leader that did not act is reported as such (D-50).
    fn report_without_lead(&self, resource: &ResourceRef, direction: Direction) {
        let leader = self
            .shared
            .role
            .standing()
            .leader
            .unwrap_or_else(|| "nobody".to_owned());
        self.shared.metrics.protected_without_lead(direction);
        tracing::warn!(%resource, direction = direction.into_str(), leader, "the leader did not act, this replica did in its place");
        let done = if direction == Direction::Down {
            "taken to 0"
        } else {
            "brought back"
        };
        let message =
            format!("The leader ({leader}) did not act: {done} by a replica that does not lead");
        self.publish_warning(resource, "", "LeaderDidNotAct", message);
    }

    fn report_not_scaled(&mut self, at: usize, direction: Direction, reason: Reason) {
        let resource = &self.config.dependents[at].resource;
        let error = WriteError::not_scaled(reason, resource, self.executor.take_error(at));
        self.shared
            .metrics
            .scaled(direction, resource, error.category());
        let uid = self
            .machine
            .known()
            .get(at)
            .and_then(|known| known.observed())
            .map_or("", |observed| &observed.uid);
        let message = format!("Cannot be scaled {}: {error}", direction.into_str());
        self.publish_warning(resource, uid, "ScalingFailed", message);
        tracing::error!(%resource, direction = direction.into_str(), category = error.category(), error = %error, "resource cannot be scaled");
    }
}

/// As in `no_node: 2, not_managed: 1`.
fn words(counts: &BTreeMap<&str, usize>) -> String {
    counts
        .iter()
        .map(|(reason, count)| format!("{reason}: {count}"))
        .collect::<Vec<_>>()
        .join(", ")
}
