//! What many trials say together.

use anyhow::Result;
use serde_json::json;

use super::leader_fault::LeaderFault;
use super::trial::{Ending, FaultOutcome, TimeOf, Trial};
use crate::report::Goal::{AtLeast, Exactly};
use crate::report::{BenchmarkReport, Spread};

/// Two heads of the table of what happened to the leader.
const REACTION: &str = "next write after that or the verdict, whichever was later: median, s";
const ELECTION: &str = "somebody else led after: median, s";

/// The name of a race without a prober.
pub const CONTROL: &str = "race-control";

/// All trials of a run, and how often a shoot without an outage was wrongly touched.
#[derive(Clone, Debug, Default)]
pub struct RaceFindings {
    /// Which trials were raced.
    pub trials: Vec<Trial>,
    /// How many were wanted.
    pub wanted: usize,
    /// Writes to shoots without an outage.
    pub wrong_writes: usize,
}

impl RaceFindings {
    /// What several runs found together.
    pub fn merged(runs: &[BenchmarkReport]) -> Result<Self> {
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
    pub fn report(&self, name: &str, what: String) -> BenchmarkReport {
        let mut report = BenchmarkReport::new(name, what);
        let all: Vec<&Trial> = self.trials.iter().collect();
        let with_faults = all.iter().any(|trial| trial.fault.is_some());
        // Without a prober none can be won.
        let should_win = name != CONTROL;
        self.add_counts(&mut report, &all, should_win, with_faults);
        add_service(&mut report, &all);
        let times: [(&str, TimeOf); 6] = [
            ("first_write", |trial| trial.first_write),
            ("kcm_write", |trial| trial.kcm_write),
            ("kcm_exit", |trial| trial.kcm_exit),
            ("lowered", |trial| trial.lowered),
            ("recovered", |trial| trial.recovered),
            ("restoring", |trial| trial.restored),
        ];
        for (key, of) in times {
            report.spread(key, &values(&all, of), should_win && !with_faults);
        }
        let least = |of: TimeOf| values(&all, of).at(0.0);
        report.add([
            ("available_min", least(|trial| Some(trial.available))),
            ("left_min", least(|trial| trial.left)),
        ]);
        for fault in LeaderFault::FAULTS {
            self.add_fault(&mut report, fault);
        }
        let not_won = all.iter().filter(|trial| should_win && !is_won(trial));
        report.detail("not_won", not_won.map(|trial| trial.account()).collect());
        report.detail("wanted", self.wanted.into());
        report.detail("raced", json!(self.trials));
        report
    }

    fn add_counts(
        &self,
        report: &mut BenchmarkReport,
        all: &[&Trial],
        should_win: bool,
        with_faults: bool,
    ) {
        let raced = all.len() as f64;
        let count = |which: fn(&Trial) -> bool| count(all, which);
        let sum = |of: fn(&Trial) -> usize| sum(all, of);
        let no_time = count(|trial| trial.ending() == Ending::NoTime);
        let excused = count(|trial| trial.ending() == Ending::Lost && trial.is_excused());
        let to_be_won = AtLeast(raced - no_time - excused);
        report.judge("trials", raced, Some(AtLeast(self.wanted as f64)));
        report.judge("won", count(is_won), should_win.then_some(to_be_won));
        report.add([("no_time", no_time)]);
        let is_promised = |fault: &FaultOutcome| fault.promised.is_some();
        if all
            .iter()
            .any(|trial| trial.fault.as_ref().is_some_and(is_promised))
        {
            report.add([("excused", excused), ("late", count(Trial::is_late))]);
        }
        report.add([
            ("lost", count(|trial| trial.ending() == Ending::Lost)),
            ("nodes", sum(|trial| trial.nodes)),
            ("unknown", sum(|trial| trial.unknown)),
        ]);
        let restored = count(|trial| trial.restored.is_some());
        report.judge("restored", restored, Some(AtLeast(raced)));
        report.add([
            (
                "early",
                count(|trial| trial.first_write.is_some_and(|late| late < 0.0)),
            ),
            ("superfluous", sum(|trial| trial.superfluous)),
            ("wrong_writes", self.wrong_writes as f64),
        ]);
        let goal = (!with_faults).then_some(Exactly(0.0));
        report.judge("without_lead", sum(|trial| trial.without_lead), goal);
    }

    /// What came of one kind of fault of the leader.
    fn add_fault(&self, report: &mut BenchmarkReport, kind: LeaderFault) {
        let is_hit = |trial: &&Trial| {
            trial
                .fault
                .as_ref()
                .is_some_and(|fault| fault.change == kind)
        };
        let hit: Vec<&Trial> = self.trials.iter().filter(is_hit).collect();
        if hit.is_empty() {
            return;
        }
        let mut early = hit.clone();
        early.retain(|trial| trial.early_fault().is_some());
        let reaction = values(&hit, Trial::reaction);
        let election = values(&hit, |trial| trial.fault.as_ref()?.election);
        let unknown = sum(&hit, |trial| trial.unknown);
        let without_lead = sum(&hit, |trial| trial.without_lead);
        let cells = [
            ("trials", "outages", hit.len() as f64),
            ("won", "won", count(&hit, is_won)),
            ("early", "not all written yet", early.len() as f64),
            ("early_won", "of these won", count(&early, is_won)),
            ("unknown", "nodes ever Unknown", unknown),
            ("reaction_p50", REACTION, reaction.at(0.5)),
            ("reaction_max", "worst, s", reaction.at(1.0)),
            ("election_p50", ELECTION, election.at(0.5)),
            ("without_lead", "writes without the lead", without_lead),
        ];
        report.matrix_row(kind.words(), &format!("{}_*", kind.key()), &cells);
    }
}

/// What became of a Service with a pod on each node, which was not counted in the oldest results.
fn add_service(report: &mut BenchmarkReport, all: &[&Trial]) {
    let lost = values(all, |trial| Some(trial.endpoints_lost? as f64));
    let lost = lost.values().iter().copied().reduce(|sum, lost| sum + lost);
    let unserved = values(all, |trial| trial.unserved);
    report.add([
        ("endpoints_lost", lost.unwrap_or(f64::NAN)),
        ("unserved_p50", unserved.at(0.5)),
        ("unserved_max", unserved.at(1.0)),
    ]);
}

fn is_won(trial: &Trial) -> bool {
    trial.ending() == Ending::Won
}

fn count(trials: &[&Trial], which: fn(&Trial) -> bool) -> f64 {
    trials.iter().filter(|trial| which(trial)).count() as f64
}

fn sum(trials: &[&Trial], of: fn(&Trial) -> usize) -> f64 {
    trials.iter().map(|trial| of(trial)).sum::<usize>() as f64
}

fn values(trials: &[&Trial], of: TimeOf) -> Spread {
    trials.iter().filter_map(|trial| of(trial)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::results::read_all;
    use crate::writes::WrittenBy;

    /// The races of which docs/results keeps all trials, by name.
    fn races() -> BTreeMap<String, BenchmarkReport> {
        let mut results =
            read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")).expect("results");
        results.retain(|_, result| result.figures.contains_key("raced"));
        results
    }

    /// What is not as it should be once this has happened to the first trial of a race.
    fn missed(race: &str, spoil: fn(&mut Trial)) -> String {
        let mut findings = RaceFindings::merged(&[races()[race].clone()]).expect("a race");
        spoil(&mut findings.trials[0]);
        findings.report(race, String::new()).missed().join(", ")
    }

    #[test]
    fn the_trials_of_each_kept_race_still_say_what_was_said_of_them() {
        for (name, kept) in races() {
            let said = RaceFindings::merged(std::slice::from_ref(&kept))
                .expect("a race")
                .report(&name, String::new());
            for (key, figure) in &kept.figures {
                assert_eq!(said.figures.get(key), Some(figure), "{name}: {key}");
            }
            assert_eq!(said.matrix, kept.matrix, "{name}");
            assert!(said.missed().is_empty(), "{name}: {:?}", said.missed());
        }
    }

    #[test]
    fn a_lost_trial_misses_the_goal_unless_nobody_could_be_there_again() {
        let lose: fn(&mut Trial) = |trial| trial.unknown = 1;
        assert_eq!(
            ["race-none", "race-leader"].map(|race| missed(race, lose)),
            ["won: no node ever Unknown"; 2]
        );
        assert_eq!(
            races()["race-restarted"].figure("excused"),
            races()["race-restarted"].figure("lost")
        );
        assert_eq!(
            missed("race-none", |trial| trial.without_lead = 1),
            "writes by a replica that did not lead"
        );
    }

    #[test]
    fn the_account_of_a_trial_says_who_wrote_first_and_whether_it_led() {
        for trial in Trial::all_of(&races()["race-leader"]).expect("a race") {
            let WrittenBy { replica, leads } = trial.first_by.clone().expect("each was won");
            let words = format!(
                "by {replica}, which {}, kube",
                if leads { "led" } else { "did not lead" }
            );
            assert!(trial.account().contains(&words), "{}", trial.account());
        }
    }

    #[test]
    fn runs_merge_into_what_one_long_run_would_have_said() {
        let whole = RaceFindings::merged(&[races()["race-none"].clone()]).expect("a race");
        let run = |trials: &[Trial]| {
            RaceFindings {
                trials: trials.into(),
                wanted: 50,
                wrong_writes: 1,
            }
            .report("race", String::new())
        };
        let merged = RaceFindings::merged(&[run(&whole.trials[..30]), run(&whole.trials[30..])])
            .expect("two runs");
        assert_eq!(
            (merged.trials, merged.wanted, merged.wrong_writes),
            (whole.trials, 100, 2)
        );
        assert!(RaceFindings::merged(&[BenchmarkReport::new("growth", String::new())]).is_err());
    }
}
