//! One outage, as the numbers that it left behind. No input and no output here.

use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use testbed::shoot::KCM;

use super::leader_fault::LeaderFault;
use super::replicas::Hit;
use crate::course::{Course, seconds};
use crate::report::BenchmarkReport;
use crate::writes::{DeploymentWrite, WrittenBy};

/// What a process that is started again needs beside a kubelet's beat of watching: a second until
/// it is started, a second that is watched longer, and four to begin, to probe and to write.
const START: f64 = 6.0;
/// The same for one that has watched for long enough when the verdict falls.
const SETTLED: f64 = 2.0;

/// One outage and the moments in it that are not in its [`Trial`].
pub struct RacedOutage {
    /// What came of it.
    pub trial: Trial,
    /// When it began.
    pub cut: DateTime<Utc>,
    /// When the verdict could first fall, and when nodes ended.
    pub course: Course,
    /// The writes in it, in order.
    pub writes: Vec<DeploymentWrite>,
}

impl RacedOutage {
    /// With what the writes in it say of the trial.
    pub fn new(
        trial: Trial,
        cut: DateTime<Utc>,
        course: Course,
        writes: Vec<DeploymentWrite>,
    ) -> Self {
        let late = |write: &DeploymentWrite| seconds(course.verdict, write.answered);
        let kcm = writes.iter().find(|write| write.name == KCM);
        let trial = Trial {
            verdict: seconds(cut, course.verdict),
            available: seconds(course.verdict, course.first_end),
            first_write: writes.first().map(late),
            first_by: writes.first().map(|write| write.by.clone()),
            kcm_write: kcm.map(late),
            last_write: writes.last().map(late),
            ..trial
        };
        Self {
            trial,
            cut,
            course,
            writes,
        }
    }
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// No node was ever Unknown.
    Won,
    /// A node was Unknown, and no one could have helped it: between the verdict and its end there
    /// was less time than kube-controller-manager takes to end.
    NoTime,
    /// A node was Unknown.
    Lost,
}

/// What happened to the leader in a trial. All times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultOutcome {
    pub change: LeaderFault,
    /// From the outage to it; negative when it came first.
    pub after_outage: f64,
    /// From it to the first node's end.
    pub before_end: f64,
    /// From it until somebody else led, where that came to be.
    pub election: Option<f64>,
    /// Whether kube-controller-manager's write, the last, was made before it.
    pub written_before: bool,
    /// From it to the answer to the next write in the outage.
    pub next_write: Option<f64>,
    /// Within this time of it the shoot is to be protected, if not sooner: where there is no other
    /// replica, the start of the next process, and what that must watch before it believes a
    /// silence.
    pub promised: Option<f64>,
}

impl FaultOutcome {
    /// Of this outage. `grace` is the shoot's.
    pub fn of(
        hit: &Hit,
        elected: Option<DateTime<Utc>>,
        outage: &RacedOutage,
        grace: TimeDelta,
    ) -> Self {
        let next = outage.writes.iter().find(|write| write.answered > hit.at);
        let kcm = outage.writes.iter().find(|write| write.name == KCM);
        Self {
            change: hit.fault,
            after_outage: seconds(outage.cut, hit.at),
            before_end: seconds(hit.at, outage.course.first_end),
            election: elected.map(|at| seconds(hit.at, at)),
            written_before: kcm.is_some_and(|write| write.answered <= hit.at),
            next_write: next.map(|write| seconds(hit.at, write.answered)),
            promised: (hit.fault == LeaderFault::Restarted)
                .then(|| (grace / 4).as_seconds_f64() + START),
        }
    }
}

/// One outage of one shoot. All times in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trial {
    /// Its number in this run.
    pub number: usize,
    /// The number of the shoot that it ran in.
    pub lane: usize,
    /// How many nodes the shoot had.
    pub nodes: usize,
    /// From the outage to the instant at which the verdict could first fall.
    pub verdict: f64,
    /// From the verdict to the first node's end: the time that there was.
    pub available: f64,
    /// From the verdict to the answer to the first protective write, where there was one.
    pub first_write: Option<f64>,
    /// Whose that was.
    pub first_by: Option<WrittenBy>,
    /// From the verdict to the answer to kube-controller-manager's write.
    pub kcm_write: Option<f64>,
    /// From the verdict to the answer to the last write in the outage.
    pub last_write: Option<f64>,
    /// From SIGTERM to the end of the process.
    pub kcm_exit: Option<f64>,
    /// From the end of the process to the first node's end: the time that was left over; negative:
    /// it came too late.
    pub left: Option<f64>,
    /// How many nodes were ever Unknown.
    pub unknown: usize,
    /// How many endpoints of a Service with a pod on each node were ever not ready, where that was
    /// counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints_lost: Option<usize>,
    /// For how long that Service had no ready endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unserved: Option<f64>,
    /// From the moment at which others brought a controller up in mid-outage to the answer to the
    /// write that took it back to 0.
    pub lowered: Option<f64>,
    /// From the moment at which enough nodes had renewed again to the answer to the first restoring
    /// write.
    pub recovered: Option<f64>,
    /// From the end of the outage until all was as before, where it came to that.
    pub restored: Option<f64>,
    /// Writes to this shoot's Deployments that were not due: beyond one down and one up for each.
    pub superfluous: usize,
    /// Writes to this shoot's Deployments by a replica that did not lead.
    pub without_lead: usize,
    /// What happened to the leader in mid-outage, if anything did.
    pub fault: Option<FaultOutcome>,
}

/// A time that a trial may have.
pub type TimeOf = fn(&Trial) -> Option<f64>;

impl Trial {
    /// The outages of a race.
    pub fn all_of(race: &BenchmarkReport) -> Result<Vec<Self>> {
        Ok(serde_json::from_value(
            race.figures.get("raced").context("no outages")?.clone(),
        )?)
    }

    /// How it ended.
    pub fn ending(&self) -> Ending {
        if self.unknown == 0 {
            Ending::Won
        } else if self.kcm_exit.is_some_and(|exit| self.available < exit) {
            Ending::NoTime
        } else {
            Ending::Lost
        }
    }

    /// From when the next write was due, which is the fault or the verdict, to its answer.
    pub fn reaction(&self) -> Option<f64> {
        let fault = self.fault.as_ref()?;
        Some(fault.next_write? - (self.verdict - fault.after_outage).max(0.0))
    }

    /// What happened to the leader before all was written.
    pub fn early_fault(&self) -> Option<&FaultOutcome> {
        self.fault.as_ref().filter(|fault| !fault.written_before)
    }

    /// Whether the first node's end came before anybody could be there again.
    pub fn is_excused(&self) -> bool {
        self.early_fault().is_some_and(|fault| {
            fault
                .promised
                .is_some_and(|promised| fault.before_end < promised)
        })
    }

    /// Whether the only replica, started again, wrote later than promised.
    pub fn is_late(&self) -> bool {
        self.early_fault().is_some_and(|fault| {
            let due = |promised: f64| promised.max(self.verdict - fault.after_outage + SETTLED);
            fault
                .promised
                .is_some_and(|promised| fault.next_write.is_none_or(|next| next > due(promised)))
        })
    }

    /// All that explains how it ended, for a person.
    pub fn account(&self) -> String {
        format!(
            "trial {}: {:?}; {}",
            self.number,
            self.ending(),
            json!(self)
        )
    }
}

#[cfg(test)]
mod tests {
    use testbed::shoot::MCM;

    use super::*;

    /// An outage that begins at 0, with its verdict at 25 and the first node's end at 32, in which
    /// this happens to the leader, and kube-controller-manager's Deployment is written, a second
    /// after machine-controller-manager's.
    fn hit(fault: LeaderFault, second: i64, written: i64) -> Trial {
        let at = |second| DateTime::UNIX_EPOCH + TimeDelta::seconds(second);
        let write = |(name, second): (&str, i64)| DeploymentWrite {
            namespace: "shoot".into(),
            name: name.into(),
            by: WrittenBy {
                replica: "a".into(),
                leads: true,
            },
            answered: at(second),
        };
        let course = Course {
            verdict: at(25),
            first_end: at(32),
            last_end: at(40),
        };
        let writes = [(MCM, written - 1), (KCM, written)].map(write).into();
        let outage = RacedOutage::new(Trial::default(), at(0), course, writes);
        let hit = Hit {
            fault,
            replica: "a",
            at: at(second),
        };
        let elected = Some(at(second + 15));
        let fault = FaultOutcome::of(&hit, elected, &outage, TimeDelta::seconds(40));
        Trial {
            fault: Some(fault),
            ..outage.trial
        }
    }

    #[test]
    fn faults_are_measured_from_themselves_or_the_verdict() {
        let trial = hit(LeaderFault::Killed, 27, 30);
        let moments = [trial.verdict, trial.available];
        assert_eq!(moments, [25.0, 7.0]);
        let late = [trial.first_write, trial.kcm_write, trial.last_write];
        assert_eq!(late, [4.0, 5.0, 5.0].map(Some));
        let expected = FaultOutcome {
            change: LeaderFault::Killed,
            after_outage: 27.0,
            before_end: 5.0,
            election: Some(15.0),
            written_before: false,
            next_write: Some(2.0),
            promised: None,
        };
        assert_eq!(trial.fault, Some(expected));
        let reaction = |second, written| hit(LeaderFault::Killed, second, written).reaction();
        let reactions = [reaction(10, 28), reaction(27, 30), reaction(30, 28)];
        assert_eq!(reactions, [Some(2.0), Some(2.0), None]);
    }
}
