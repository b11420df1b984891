//! What many trials say together.

use anyhow::{Context, Result};
use serde_json::Value;

use super::trial::{Ending, Trial};
use crate::report::{Goal, Report};

/// The goal for the first protective write: within 0.5 s of the verdict.
const LATENESS: Goal = Goal::AtMost(0.5);

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
    /// Reads what earlier runs have printed: each text holds a JSON line.
    pub fn merged(texts: &[String]) -> Result<(String, Self)> {
        let (mut all, mut name) = (Self::default(), String::new());
        for text in texts {
            let line = text.lines().rfind(|line| line.starts_with('{')).context("no JSON line")?;
            let run: Value = serde_json::from_str(line)?;
            let figures = &run["figures"];
            let count = |key: &str| figures[key].as_f64().unwrap_or_default() as usize;
            all.trials.extend(serde_json::from_value::<Vec<Trial>>(figures["raced"].clone())?);
            all.wanted += count("wanted");
            all.wrong_writes += count("wrong_writes");
            name = run["benchmark"].as_str().unwrap_or("race").to_owned();
        }
        Ok((name, all))
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
        let changes = self.trials.iter().any(|trial| trial.change.is_some());
        report.measured_against("trials", "outages raced", self.trials.len() as f64, "", Goal::AtLeast(self.wanted as f64));
        let won = self.count(|trial| trial.ending() == Ending::Won);
        let no_time = self.count(|trial| trial.ending() == Ending::NoTime);
        // With a change of leader in mid-outage, or with no prober at all, not all can be won.
        let should_win = !changes && name != CONTROL;
        if !should_win {
            report.figure("won", "won: no node ever Unknown", won, "");
        } else {
            report.measured_against(
                "won",
                "won: no node ever Unknown",
                won,
                "",
                Goal::AtLeast(self.trials.len() as f64 - no_time),
            );
        }
        report.figure("no_time", "not to be won: less time than the process takes to end", no_time, "");
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

        let goal = should_win.then_some(LATENESS);
        let mut spread = |key: &str, what: &str, goal, value: &dyn Fn(&Trial) -> Option<f64>| {
            report.spread(key, what, &mut self.values(value), "s", goal);
        };
        spread("first_write", "verdict to first write", goal, &|trial| trial.first_write);
        spread("kcm_write", "verdict to kube-controller-manager's write", None, &|trial| trial.kcm_write);
        spread("kcm_exit", "SIGTERM to the end of its process", None, &|trial| trial.kcm_exit);
        spread("restoring", "end of the outage to all restored", None, &|trial| trial.restored);
        for (key, what, values) in [
            ("available_min", "verdict to first node's end, least", self.values(|trial| Some(trial.available))),
            ("left_min", "left over when the process had ended, least", self.values(|trial| trial.left)),
        ] {
            if let Some(least) = values.into_iter().min_by(f64::total_cmp) {
                report.figure(key, what, least, "s");
            }
        }
        if changes {
            self.report_changes(&mut report);
        }
        report.detail("wanted", self.wanted);
        report.detail("raced", serde_json::to_value(&self.trials).unwrap_or_default());
        report
    }

    /// The race with a change of leader, by how the old one ended and whether it had written.
    fn report_changes(&self, report: &mut Report) {
        for (killed, key, how) in [(true, "killed", "leader killed"), (false, "replaced", "leader asked to end")] {
            let of = |trial: &&Trial| trial.change.as_ref().is_some_and(|change| change.killed == killed);
            let of: Vec<&Trial> = self.trials.iter().filter(of).collect();
            if of.is_empty() {
                continue;
            }
            let won = |trials: &[&Trial]| trials.iter().filter(|trial| trial.ending() == Ending::Won).count() as f64;
            report.figure(&format!("{key}_trials"), format!("{how}: trials"), of.len() as f64, "");
            report.figure(&format!("{key}_won"), format!("{how}: won"), won(&of), "");
            let changes: Vec<_> = of.iter().filter_map(|trial| trial.change.as_ref()).collect();
            let before: Vec<&Trial> =
                of.iter().copied().filter(|trial| trial.change.as_ref().is_some_and(|change| !change.written_before)).collect();
            report.figure(&format!("{key}_early"), format!("{how} before it had written: trials"), before.len() as f64, "");
            report.figure(&format!("{key}_early_won"), format!("{how} before it had written: won"), won(&before), "");
            let mut election: Vec<f64> = changes.iter().map(|change| change.election).collect();
            report.spread(&format!("{key}_election"), &format!("{how}: signal to new leader"), &mut election, "s", None);
            let mut write: Vec<f64> = changes.iter().filter_map(|change| change.lead_to_write).collect();
            report.spread(&format!("{key}_lead_to_write"), &format!("{how}: new leader to its write"), &mut write, "s", None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::Change;
    use super::*;

    fn trial(number: usize, unknown: usize, change: Option<Change>) -> Trial {
        Trial {
            number,
            lane: 1,
            nodes: 10,
            verdict: 25.0,
            available: 4.5,
            first_write: Some(0.25),
            kcm_write: Some(1.5),
            kcm_exit: Some(0.5),
            left: Some(2.5),
            unknown,
            restored: Some(50.0),
            superfluous: 0,
            change,
        }
    }

    fn figures(report: &Report) -> Value {
        serde_json::from_str::<Value>(&report.json()).expect("JSON")["figures"].clone()
    }

    #[test]
    fn runs_merge_into_what_one_long_run_would_have_said() {
        let run = |trials: Vec<Trial>, wrong_writes| Findings { wanted: trials.len(), trials, wrong_writes };
        let (first, second) = (trial(1, 0, None), trial(2, 3, None));
        let whole = run(vec![first.clone(), second.clone()], 2);
        let texts =
            [run(vec![first], 1), run(vec![second], 1)].map(|run| format!("progress\n{}\n", run.report("race", "").json()));
        let (name, merged) = Findings::merged(&texts).expect("two JSON lines");
        assert_eq!((name.as_str(), figures(&merged.report("race", ""))), ("race", figures(&whole.report("race", ""))));
        let figures = figures(&whole.report("race", ""));
        assert_eq!((&figures["won"], &figures["lost"], &figures["unknown"]), (&1.0.into(), &1.0.into(), &3.0.into()));
        assert_eq!(figures["wrong_writes"], 2.0);
    }

    #[test]
    fn a_lost_trial_misses_the_goal_unless_the_leader_changed() {
        let missed = |trial: Trial| {
            let findings = Findings { trials: vec![trial], wanted: 1, wrong_writes: 0 };
            serde_json::from_str::<Value>(&findings.report("race", "").json()).expect("JSON")["missed"].clone()
        };
        assert_eq!(missed(trial(1, 1, None)), serde_json::json!(["won"]));
        let change = Change { killed: true, after_outage: 5.0, election: 16.0, written_before: false, lead_to_write: Some(11.0) };
        assert_eq!(missed(trial(1, 1, Some(change))), serde_json::json!([]));
    }

    #[test]
    fn what_holds_no_findings_is_not_merged() {
        assert!(Findings::merged(&["no JSON here".into()]).is_err());
    }
}
