//! What many trials say together.

use anyhow::Result;

use super::change::Change;
use super::trial::{Ending, Fault, Trial};
use crate::report::Goal::{AtLeast, AtMost, Exactly};
use crate::report::kept::Kept;
use crate::report::{Goal, Report, Spread};

/// The goal for the first protective write: within 0.5 s of the verdict.
const LATENESS: Goal = AtMost(0.5);
/// The goal for what others bring up in mid-outage: the look that is wanted then is at once, or a second after the last such one.
const LOWERED: Goal = AtMost(1.5);
/// The goal for the first restoring write: looks are half a beat, 5 s, apart while anything is held down.
const RECOVERED: Goal = AtMost(5.5);

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

    /// The whole report.
    pub fn report(&self, name: &str, what: impl Into<String>) -> Report {
        let mut report = Report::new(name, what);
        let all: Vec<&Trial> = self.trials.iter().collect();
        let count = |which: fn(&Trial) -> bool| all.iter().filter(|trial| which(trial)).count() as f64;
        let sum = |of: fn(&Trial) -> usize| all.iter().map(|trial| of(trial)).sum::<usize>() as f64;
        let raced = all.len() as f64;
        let with_faults = all.iter().any(|trial| trial.fault.is_some());
        // Without a prober none can be won.
        let should_win = name != CONTROL;
        let no_time = count(|trial| trial.ending() == Ending::NoTime);
        let excused = count(|trial| trial.ending() == Ending::Lost && trial.is_excused());
        let to_be_won = should_win.then_some(AtLeast(raced - no_time - excused));
        report.rows([
            ("trials", "outages raced", raced, "", Some(AtLeast(self.wanted as f64))),
            ("won", "won: no node ever Unknown", count(Trial::is_won), "", to_be_won),
            ("no_time", "not to be won: less time than the process takes to end", no_time, "", None),
        ]);
        if all.iter().any(|trial| trial.fault.as_ref().is_some_and(|fault| fault.promised.is_some())) {
            report.rows([
                ("excused", "not to be won: the only replica could not be there again", excused, "", None),
                ("late", "first write later than promised after a start", count(Trial::is_late), "", Some(Exactly(0.0))),
            ]);
        }
        let restored = count(|trial| trial.restored.is_some());
        let early = count(|trial| trial.first_write.is_some_and(|late| late < 0.0));
        let none = Some(Exactly(0.0));
        let none_without_faults = none.filter(|_| !with_faults);
        report.rows([
            ("lost", "lost", count(|trial| trial.ending() == Ending::Lost), "", None),
            ("nodes", "nodes cut off", sum(|trial| trial.nodes), "", None),
            ("unknown", "nodes ever Unknown", sum(|trial| trial.unknown), "", None),
            ("restored", "all restored", restored, "", Some(AtLeast(raced))),
            ("early", "trials with a write before the verdict", early, "", none),
            ("superfluous", "writes that were not due", sum(|trial| trial.superfluous), "", none),
            ("wrong_writes", "writes to shoots without an outage", self.wrong_writes as f64, "", none),
            ("without_lead", "writes by a replica that did not lead", sum(|trial| trial.without_lead), "", none_without_faults),
        ]);

        let values = |of: fn(&Trial) -> Option<f64>| all.iter().filter_map(|trial| of(trial)).collect::<Spread>();
        let goal = |goal: Goal| (should_win && !with_faults).then_some(goal);
        for (key, what, values, goal) in [
            ("first_write", "verdict to first write", values(|trial| trial.first_write), goal(LATENESS)),
            ("kcm_write", "verdict to kube-controller-manager's write", values(|trial| trial.kcm_write), None),
            ("kcm_exit", "SIGTERM to the end of its process", values(|trial| trial.kcm_exit), None),
            ("lowered", "brought up by others to 0 again", values(|trial| trial.lowered), goal(LOWERED)),
            ("recovered", "enough nodes renewed to first restoring write", values(|trial| trial.recovered), goal(RECOVERED)),
            ("restoring", "end of the outage to all restored", values(|trial| trial.restored), None),
        ] {
            report.spread(key, what, &values, "s", goal);
        }
        for (key, what, values) in [
            ("available_min", "verdict to first node's end, least", values(|trial| Some(trial.available))),
            ("left_min", "left over when the process had ended, least", values(|trial| trial.left)),
        ] {
            if let Some(least) = values.values().first() {
                report.add(key, what, *least, "s", None);
            }
        }
        for change in Change::FAULTS {
            self.report_change(&mut report, change);
        }
        let not_won = all.iter().filter(|trial| should_win && !trial.is_won());
        report.detail("not_won", not_won.map(|trial| trial.account()).collect::<Vec<_>>());
        report.detail("wanted", self.wanted);
        report.detail("raced", serde_json::to_value(&self.trials).unwrap_or_default());
        report
    }

    /// What came of one kind of change in mid-outage.
    fn report_change(&self, report: &mut Report, change: Change) {
        let trials: Vec<(&Trial, &Fault)> =
            self.trials.iter().filter_map(|trial| Some((trial, trial.fault_by(change)?))).collect();
        if trials.is_empty() {
            return;
        }
        let (key, how) = (change.key(), change.words());
        let count = |which: fn(&Trial, &Fault) -> bool| trials.iter().filter(|(trial, fault)| which(trial, fault)).count() as f64;
        let sum = |of: fn(&Trial) -> usize| trials.iter().map(|(trial, _)| of(trial)).sum::<usize>() as f64;
        for (figure, what, value) in [
            ("trials", "trials", trials.len() as f64),
            ("won", "won", count(|trial, _| trial.is_won())),
            ("early", "before all was written: trials", count(|_, fault| !fault.written_before)),
            ("early_won", "before all was written: won", count(|trial, fault| !fault.written_before && trial.is_won())),
            ("unknown", "nodes ever Unknown", sum(|trial| trial.unknown)),
            ("without_lead", "writes by a replica that did not lead", sum(|trial| trial.without_lead)),
        ] {
            report.add(&format!("{key}_{figure}"), &format!("{how}, {what}"), value, "", None);
        }
        let values = |of: fn(&Trial, &Fault) -> Option<f64>| {
            trials.iter().filter_map(|(trial, fault)| of(trial, fault)).collect::<Spread>()
        };
        let after_both = "next write after that or the verdict, whichever was later";
        for (figure, what, values) in [
            ("next_write", "next write after that", values(|_, fault| fault.next_write)),
            ("reaction", after_both, values(|trial, fault| fault.reaction(trial.verdict))),
            ("election", "until somebody else led", values(|_, fault| fault.election)),
        ] {
            report.spread(&format!("{key}_{figure}"), &format!("{how}, {what}"), &values, "s", None);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::writes::Writer;

    fn trial(number: usize, unknown: usize, fault: Option<Fault>) -> Trial {
        Trial {
            number,
            verdict: 25.0,
            available: 4.5,
            first_write: Some(0.25),
            lowered: Some(0.1),
            recovered: Some(3.0),
            first_by: Some(Writer { replica: "b".into(), leads: fault.is_none() }),
            unknown,
            restored: Some(50.0),
            without_lead: usize::from(fault.is_some()),
            fault,
            ..Trial::default()
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
