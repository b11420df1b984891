//! What many trials say together.

use anyhow::Result;

use super::change::Change;
use super::trial::{Ending, Fault, Trial};
use crate::report::kept::Kept;
use crate::report::{Goal, Report};

/// The goal for the first protective write: within 0.5 s of the verdict.
const LATENESS: Goal = Goal::AtMost(0.5);
/// The goal for what others bring up in mid-outage: the look that is wanted then is at once, or a second after the last such one.
const LOWERED: Goal = Goal::AtMost(1.5);
/// The goal for the first restoring write: looks are half a beat, 5 s, apart while anything is held down.
const RECOVERED: Goal = Goal::AtMost(5.5);

/// The name of a race without a prober.
pub const CONTROL: &str = "race-control";

/// All trials of a run, and how often a shoot without an outage was wrongly touched.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Which trials were raced.
    pub trials: Vec<Trial>,
    /// How many were wanted.
    pub wanted: usize,
    /// Writes to shoots without an outage.
    pub wrong_writes: usize,
}

impl Findings {
    /// What several runs found together.
    pub fn merged(runs: &[Kept]) -> Result<Self> {
        let mut all = Self::default();
        for run in runs {
            let count = |key: &str| run.figure(key).unwrap_or_default() as usize;
            all.trials.extend(Trial::all_of(run)?);
            all.wanted += count("wanted");
            all.wrong_writes += count("wrong_writes");
        }
        Ok(all)
    }

    fn count(&self, which: impl Fn(&Trial) -> bool) -> f64 {
        self.trials.iter().filter(|trial| which(trial)).count() as f64
    }

    fn values(&self, value: impl Fn(&Trial) -> Option<f64>) -> Vec<f64> {
        self.trials.iter().filter_map(value).collect()
    }

    /// The whole report.
    pub fn report(&self, name: &str, what: impl Into<String>) -> Report {
        let mut report = Report::new(name, what);
        let faults = self.trials.iter().any(|trial| trial.fault.is_some());
        report.measured_against("trials", "outages raced", self.trials.len() as f64, "", Goal::AtLeast(self.wanted as f64));
        let won = self.count(|trial| trial.ending() == Ending::Won);
        let no_time = self.count(|trial| trial.ending() == Ending::NoTime);
        let excused = self.count(|trial| trial.ending() == Ending::Lost && trial.is_excused());
        // Without a prober none can be won.
        let should_win = name != CONTROL;
        if should_win {
            let goal = Goal::AtLeast(self.trials.len() as f64 - no_time - excused);
            report.measured_against("won", "won: no node ever Unknown", won, "", goal);
        } else {
            report.figure("won", "won: no node ever Unknown", won, "");
        }
        report.figure("no_time", "not to be won: less time than the process takes to end", no_time, "");
        if self.trials.iter().any(|trial| trial.fault.as_ref().is_some_and(|fault| fault.promised.is_some())) {
            report.figure("excused", "not to be won: the only replica could not be there again", excused, "");
            let late = self.count(Trial::is_late);
            report.measured_against("late", "first write later than promised after a start", late, "", Goal::Exactly(0.0));
        }
        report.figure("lost", "lost", self.count(|trial| trial.ending() == Ending::Lost), "");
        let unknown = self.trials.iter().map(|trial| trial.unknown).sum::<usize>();
        report.figure("nodes", "nodes cut off", self.trials.iter().map(|trial| trial.nodes).sum::<usize>() as f64, "");
        report.figure("unknown", "nodes ever Unknown", unknown as f64, "");
        let restored = self.count(|trial| trial.restored.is_some());
        report.measured_against("restored", "all restored", restored, "", Goal::AtLeast(self.trials.len() as f64));
        let early = self.count(|trial| trial.first_write.is_some_and(|late| late < 0.0));
        report.measured_against("early", "trials with a write before the verdict", early, "", Goal::Exactly(0.0));
        let superfluous = self.trials.iter().map(|trial| trial.superfluous).sum::<usize>();
        report.measured_against("superfluous", "writes that were not due", superfluous as f64, "", Goal::Exactly(0.0));
        let wrong = self.wrong_writes as f64;
        report.measured_against("wrong_writes", "writes to shoots without an outage", wrong, "", Goal::Exactly(0.0));
        let without_lead = self.trials.iter().map(|trial| trial.without_lead).sum::<usize>() as f64;
        let what = "writes by a replica that did not lead";
        match faults {
            true => report.figure("without_lead", what, without_lead, ""),
            false => report.measured_against("without_lead", what, without_lead, "", Goal::Exactly(0.0)),
        }

        let goal = |goal| (should_win && !faults).then_some(goal);
        let mut spread = |key: &str, what: &str, goal, value: &dyn Fn(&Trial) -> Option<f64>| {
            report.spread(key, what, &mut self.values(value), "s", goal);
        };
        spread("first_write", "verdict to first write", goal(LATENESS), &|trial| trial.first_write);
        spread("kcm_write", "verdict to kube-controller-manager's write", None, &|trial| trial.kcm_write);
        spread("kcm_exit", "SIGTERM to the end of its process", None, &|trial| trial.kcm_exit);
        spread("lowered", "brought up by others to 0 again", goal(LOWERED), &|trial| trial.lowered);
        spread("recovered", "enough nodes renewed to first restoring write", goal(RECOVERED), &|trial| trial.recovered);
        spread("restoring", "end of the outage to all restored", None, &|trial| trial.restored);
        for (key, what, values) in [
            ("available_min", "verdict to first node's end, least", self.values(|trial| Some(trial.available))),
            ("left_min", "left over when the process had ended, least", self.values(|trial| trial.left)),
        ] {
            if let Some(least) = values.into_iter().min_by(f64::total_cmp) {
                report.figure(key, what, least, "s");
            }
        }
        for change in Change::FAULTS {
            self.report_change(&mut report, change);
        }
        let lost = self.trials.iter().filter(|trial| should_win && trial.ending() != Ending::Won);
        report.detail("not_won", lost.map(Trial::account).collect::<Vec<_>>());
        report.detail("wanted", self.wanted);
        report.detail("raced", serde_json::to_value(&self.trials).unwrap_or_default());
        report
    }

    /// What came of one kind of change in mid-outage.
    fn report_change(&self, report: &mut Report, change: Change) {
        let of = |trial: &&Trial| trial.fault.as_ref().is_some_and(|fault| fault.change == change);
        let trials: Vec<&Trial> = self.trials.iter().filter(of).collect();
        if trials.is_empty() {
            return;
        }
        let (key, how) = (change.key(), change.words());
        let won = |trials: &[&Trial]| trials.iter().filter(|trial| trial.ending() == Ending::Won).count() as f64;
        let sum = |count: fn(&Trial) -> usize| trials.iter().map(|trial| count(trial)).sum::<usize>() as f64;
        let faults = || trials.iter().filter_map(|trial| Some((trial.fault.as_ref()?, trial.verdict)));
        let is_early = |trial: &&Trial| trial.fault.as_ref().is_some_and(|fault| !fault.written_before);
        let early: Vec<&Trial> = trials.iter().copied().filter(is_early).collect();
        for (figure, what, value) in [
            ("trials", "trials", trials.len() as f64),
            ("won", "won", won(&trials)),
            ("early", "before all was written: trials", early.len() as f64),
            ("early_won", "before all was written: won", won(&early)),
            ("unknown", "nodes ever Unknown", sum(|trial| trial.unknown)),
            ("without_lead", "writes by a replica that did not lead", sum(|trial| trial.without_lead)),
        ] {
            report.figure(&format!("{key}_{figure}"), format!("{how}, {what}"), value, "");
        }
        let mut spread = |figure: &str, what: &str, value: fn(&Fault, f64) -> Option<f64>| {
            let mut values: Vec<f64> = faults().filter_map(|(fault, verdict)| value(fault, verdict)).collect();
            report.spread(&format!("{key}_{figure}"), &format!("{how}, {what}"), &mut values, "s", None);
        };
        spread("next_write", "next write after that", |fault, _| fault.next_write);
        spread("reaction", "next write after that or the verdict, whichever was later", Fault::reaction);
        spread("election", "until somebody else led", |fault, _| fault.election);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::writes::Writer;
    use super::*;

    fn trial(number: usize, unknown: usize, fault: Option<Fault>) -> Trial {
        Trial {
            number,
            lane: 1,
            nodes: 10,
            verdict: 25.0,
            available: 4.5,
            first_write: Some(0.25),
            first_by: Some(Writer { replica: "b".into(), leads: fault.is_none() }),
            kcm_write: Some(1.5),
            last_write: Some(1.5),
            kcm_exit: Some(0.5),
            left: Some(2.5),
            unknown,
            lowered: Some(0.1),
            recovered: Some(3.0),
            restored: Some(50.0),
            superfluous: 0,
            without_lead: usize::from(fault.is_some()),
            fault,
        }
    }

    fn fault(change: Change, promised: Option<f64>) -> Fault {
        Fault {
            change,
            after_outage: 17.0,
            before_end: 12.5,
            election: Some(16.0),
            written_before: false,
            next_write: Some(9.5),
            promised,
        }
    }

    fn kept(findings: &Findings) -> Kept {
        Kept::of_run(&format!("progress\n{}\n", findings.report("race", "").json())).expect("a result")
    }

    fn figures(report: &Report) -> Value {
        serde_json::from_str::<Value>(&report.json()).expect("JSON")["figures"].clone()
    }

    #[test]
    fn runs_merge_into_what_one_long_run_would_have_said() {
        let run = |trials: Vec<Trial>, wrong_writes| Findings { wanted: trials.len(), trials, wrong_writes };
        let (first, second) = (trial(1, 0, None), trial(2, 3, None));
        let whole = run(vec![first.clone(), second.clone()], 2);
        let runs = [run(vec![first], 1), run(vec![second], 1)].map(|run| kept(&run));
        let merged = Findings::merged(&runs).expect("two runs");
        assert_eq!(figures(&merged.report("race", "")), figures(&whole.report("race", "")));
        let figures = figures(&whole.report("race", ""));
        assert_eq!((&figures["won"], &figures["lost"], &figures["unknown"]), (&1.0.into(), &1.0.into(), &3.0.into()));
        assert_eq!(figures["wrong_writes"], 2.0);
    }

    #[test]
    fn a_lost_trial_misses_the_goal_unless_nobody_could_be_there_again() {
        let missed = |trial: Trial| {
            let findings = Findings { trials: vec![trial], wanted: 1, wrong_writes: 0 };
            serde_json::from_str::<Value>(&findings.report("race", "").json()).expect("JSON")["missed"].clone()
        };
        assert_eq!(missed(trial(1, 1, None)), serde_json::json!(["won"]));
        assert_eq!(missed(trial(1, 1, Some(fault(Change::Killed, None)))), serde_json::json!(["won"]));
        assert_eq!(missed(trial(1, 1, Some(fault(Change::Restarted, Some(16.0))))), serde_json::json!([]));
        assert_eq!(missed(Trial { without_lead: 1, ..trial(1, 0, None) }), serde_json::json!(["without_lead"]));
    }

    #[test]
    fn each_kind_of_change_is_told_apart_and_what_was_lost_is_explained() {
        let trials = vec![trial(1, 0, Some(fault(Change::Killed, None))), trial(2, 3, Some(fault(Change::SeedCut, None)))];
        let findings = Findings { trials, wanted: 2, wrong_writes: 0 };
        let report = findings.report("race", "");
        let figures = figures(&report);
        let figure = |key: &str| figures[key].as_f64();
        assert_eq!(
            [figure("killed_won"), figure("killed_unknown"), figure("killed_without_lead")],
            [Some(1.0), Some(0.0), Some(1.0)]
        );
        assert_eq!(
            [figure("seed_cut_won"), figure("seed_cut_unknown"), figure("seed_cut_early")],
            [Some(0.0), Some(3.0), Some(1.0)]
        );
        assert_eq!(
            [figure("killed_next_write_max"), figure("killed_reaction_max"), figure("stopped_won")],
            [Some(9.5), Some(1.5), None]
        );
        let told = figures["not_won"][0].as_str().unwrap_or_default();
        let parts = [
            "trial 2",
            "way to the seed cut 17.0 s after the cut",
            "by b, which did not lead",
            "the first node's end was 12.5 s after that",
        ];
        for part in parts {
            assert!(told.contains(part), "{told}");
        }
    }

    #[test]
    fn what_holds_no_findings_is_not_merged() {
        let growth = Kept::of_run(&Report::new("growth", "").json()).expect("a result");
        assert!(Findings::merged(&[growth]).is_err());
    }
}
