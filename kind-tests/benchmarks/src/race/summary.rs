//! What many trials say together.

use anyhow::Result;
use serde_json::json;

use super::change::LeaderFault;
use super::trial::{Ending, TimeOf, Trial};
use crate::report::Goal::{AtLeast, AtMost, Exactly};
use crate::report::{BenchmarkReport, Goal, Spread};

/// The goal for the first protective write: within 0.5 s of the verdict.
const LATENESS: Goal = AtMost(0.5);
/// The goal for what others bring up in mid-outage: the look that is wanted then is at once, or a
/// second after the last such one.
const LOWERED: Goal = AtMost(1.5);
/// The goal for the first restoring write: looks are half a beat, 5 s, apart while anything is held
/// down.
const RECOVERED: Goal = AtMost(5.5);

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
        let raced = all.len() as f64;
        let with_faults = all.iter().any(|trial| trial.fault.is_some());
        // Without a prober none can be won.
        let should_win = name != CONTROL;
        let no_time = count(&all, |trial| trial.ending() == Ending::NoTime);
        let excused = count(&all, |trial| {
            trial.ending() == Ending::Lost && trial.is_excused()
        });
        let to_be_won = should_win.then_some(AtLeast(raced - no_time - excused));
        report.rows([
            (
                "trials",
                "outages raced",
                raced,
                "",
                Some(AtLeast(self.wanted as f64)),
            ),
            (
                "won",
                "won: no node ever Unknown",
                count(&all, is_won),
                "",
                to_be_won,
            ),
            (
                "no_time",
                "not to be won: less time than the process takes to end",
                no_time,
                "",
                None,
            ),
        ]);
        let none = Some(Exactly(0.0));
        if all.iter().any(|trial| {
            trial
                .fault
                .as_ref()
                .is_some_and(|fault| fault.promised.is_some())
        }) {
            report.rows([
                (
                    "excused",
                    "not to be won: the only replica could not be there again",
                    excused,
                    "",
                    None,
                ),
                (
                    "late",
                    "first write later than promised after a start",
                    count(&all, Trial::is_late),
                    "",
                    none,
                ),
            ]);
        }
        let restored = count(&all, |trial| trial.restored.is_some());
        let early = count(&all, |trial| {
            trial.first_write.is_some_and(|late| late < 0.0)
        });
        let without_lead = sum(&all, |trial| trial.without_lead);
        report.rows([
            (
                "lost",
                "lost",
                count(&all, |trial| trial.ending() == Ending::Lost),
                "",
                None,
            ),
            (
                "nodes",
                "nodes cut off",
                sum(&all, |trial| trial.nodes),
                "",
                None,
            ),
            (
                "unknown",
                "nodes ever Unknown",
                sum(&all, |trial| trial.unknown),
                "",
                None,
            ),
            (
                "restored",
                "all restored",
                restored,
                "",
                Some(AtLeast(raced)),
            ),
            (
                "early",
                "trials with a write before the verdict",
                early,
                "",
                none,
            ),
            (
                "superfluous",
                "writes that were not due",
                sum(&all, |trial| trial.superfluous),
                "",
                none,
            ),
            (
                "wrong_writes",
                "writes to shoots without an outage",
                self.wrong_writes as f64,
                "",
                none,
            ),
            (
                "without_lead",
                "writes by a replica that did not lead",
                without_lead,
                "",
                none.filter(|_| !with_faults),
            ),
        ]);

        // Not counted in the oldest results.
        let lost = values(&all, |trial| Some(trial.endpoints_lost? as f64));
        let lost = lost
            .values()
            .iter()
            .copied()
            .reduce(|sum, lost| sum + lost)
            .unwrap_or(f64::NAN);
        let unserved = values(&all, |trial| trial.unserved);
        report.rows([
            ("endpoints_lost", "endpoints ever not ready", lost, "", None),
            (
                "unserved_p50",
                "Service without a ready endpoint, median",
                unserved.at(0.5),
                "s",
                None,
            ),
            (
                "unserved_max",
                "Service without a ready endpoint, worst",
                unserved.at(1.0),
                "s",
                None,
            ),
        ]);

        let goal = |goal: Goal| (should_win && !with_faults).then_some(goal);
        let spreads: [(&str, &str, TimeOf, Option<Goal>); 6] = [
            (
                "first_write",
                "verdict to first write",
                |trial| trial.first_write,
                goal(LATENESS),
            ),
            (
                "kcm_write",
                "verdict to kube-controller-manager's write",
                |trial| trial.kcm_write,
                None,
            ),
            (
                "kcm_exit",
                "SIGTERM to the end of its process",
                |trial| trial.kcm_exit,
                None,
            ),
            (
                "lowered",
                "brought up by others to 0 again",
                |trial| trial.lowered,
                goal(LOWERED),
            ),
            (
                "recovered",
                "enough nodes renewed to first restoring write",
                |trial| trial.recovered,
                goal(RECOVERED),
            ),
            (
                "restoring",
                "end of the outage to all restored",
                |trial| trial.restored,
                None,
            ),
        ];
        for (key, what, of, goal) in spreads {
            report.spread(key, what, &values(&all, of), goal);
        }
        let least = |of: TimeOf| values(&all, of).at(0.0);
        report.rows([
            (
                "available_min",
                "verdict to first node's end, least",
                least(|trial| Some(trial.available)),
                "s",
                None,
            ),
            (
                "left_min",
                "left over when the process had ended, least",
                least(|trial| trial.left),
                "s",
                None,
            ),
        ]);
        LeaderFault::FAULTS
            .into_iter()
            .for_each(|change| self.note_change(&mut report, change));
        let not_won = all.iter().filter(|trial| should_win && !is_won(trial));
        report.detail("not_won", not_won.map(|trial| trial.account()).collect());
        report.detail("wanted", self.wanted.into());
        report.detail("raced", json!(self.trials));
        report
    }

    /// What came of one kind of change in mid-outage.
    fn note_change(&self, report: &mut BenchmarkReport, change: LeaderFault) {
        let is_hit = |trial: &&Trial| {
            trial
                .fault
                .as_ref()
                .is_some_and(|fault| fault.change == change)
        };
        let hit: Vec<&Trial> = self.trials.iter().filter(is_hit).collect();
        if hit.is_empty() {
            return;
        }
        let early: Vec<&Trial> = hit
            .iter()
            .copied()
            .filter(|trial| trial.early_fault().is_some())
            .collect();
        let reaction = values(&hit, Trial::reaction);
        let election = values(&hit, |trial| trial.fault.as_ref()?.election);
        let cells = [
            ("trials", "outages", hit.len() as f64),
            ("won", "won", count(&hit, is_won)),
            ("early", "not all written yet", early.len() as f64),
            ("early_won", "of these won", count(&early, is_won)),
            (
                "unknown",
                "nodes ever Unknown",
                sum(&hit, |trial| trial.unknown),
            ),
            (
                "reaction_p50",
                "next write after that or the verdict, whichever was later: median, s",
                reaction.at(0.5),
            ),
            ("reaction_max", "worst, s", reaction.at(1.0)),
            (
                "election_p50",
                "somebody else led after: median, s",
                election.at(0.5),
            ),
            (
                "without_lead",
                "writes without the lead",
                sum(&hit, |trial| trial.without_lead),
            ),
        ];
        report.matrix_row(change.words(), &format!("{}_*", change.key()), &cells);
    }
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
