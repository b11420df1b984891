//! What many trials say together.

use serde_json::json;

use super::leader_fault::LeaderFault;
use super::trial::{Ending, TimeOf, Trial};
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
    /// The whole report.
    pub fn report(&self, name: &str, what: String) -> BenchmarkReport {
        let mut report = BenchmarkReport::new(name, what);
        let all: Vec<&Trial> = self.trials.iter().collect();
        // Without a prober none can be won.
        let should_win = name != CONTROL;
        let is_quiet = all.iter().all(|trial| trial.fault.is_none());
        add_counts(&mut report, &all, self.wanted, should_win);
        report.add([("wrong_writes", self.wrong_writes as f64)]);
        let goal = if is_quiet { "0" } else { "" };
        let without_lead = sum(&all, |trial| trial.without_lead);
        report.judge("without_lead", without_lead, goal);
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
            report.spread(key, &values(&all, of), should_win && is_quiet);
        }
        let least = |of: TimeOf| values(&all, of).at(0.0);
        report.add([
            ("available_min", least(|trial| Some(trial.available))),
            ("left_min", least(|trial| trial.left)),
        ]);
        for fault in LeaderFault::FAULTS {
            add_fault(&mut report, &all, fault);
        }
        report.detail("wanted", self.wanted.into());
        report.detail("raced", json!(self.trials));
        report
    }
}

fn add_counts(report: &mut BenchmarkReport, all: &[&Trial], wanted: usize, should_win: bool) {
    let raced = all.len() as f64;
    let count = |which: fn(&Trial) -> bool| count(all, which);
    let no_time = count(|trial| trial.ending() == Ending::NoTime);
    let excused = count(|trial| trial.ending() == Ending::Lost && trial.is_excused());
    let at_least = |least: f64| format!(">= {least}");
    report.judge("trials", raced, &at_least(wanted as f64));
    let to_be_won = should_win.then(|| at_least(raced - no_time - excused));
    report.judge("won", count(is_won), &to_be_won.unwrap_or_default());
    report.add([
        ("no_time", no_time),
        ("excused", excused),
        ("late", count(Trial::is_late)),
        ("lost", count(|trial| trial.ending() == Ending::Lost)),
        ("nodes", sum(all, |trial| trial.nodes)),
        ("unknown", sum(all, |trial| trial.unknown)),
    ]);
    let restored = count(|trial| trial.restored.is_some());
    report.judge("restored", restored, &at_least(raced));
    let is_early = |trial: &Trial| trial.first_write.is_some_and(|late| late < 0.0);
    report.add([
        ("early", count(is_early)),
        ("superfluous", sum(all, |trial| trial.superfluous)),
    ]);
}

/// What became of a Service with a pod on each node, which was not counted in the oldest results.
fn add_service(report: &mut BenchmarkReport, all: &[&Trial]) {
    let lost = all.iter().filter_map(|trial| trial.endpoints_lost);
    let lost = lost.reduce(|sum, lost| sum + lost);
    let unserved = values(all, |trial| trial.unserved);
    report.add([
        ("endpoints_lost", lost.map_or(f64::NAN, |lost| lost as f64)),
        ("unserved_p50", unserved.at(0.5)),
        ("unserved_max", unserved.at(1.0)),
    ]);
}

/// What came of one kind of fault of the leader.
fn add_fault(report: &mut BenchmarkReport, all: &[&Trial], kind: LeaderFault) {
    let mut hit = all.to_vec();
    hit.retain(|trial| trial.fault.as_ref().map(|fault| fault.change) == Some(kind));
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
    use std::path::Path;

    use super::*;
    use crate::results::read_all;

    #[test]
    fn kept_trials_say_what_was_said_of_them() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut races = read_all(&docs).expect("results");
        races.retain(|_, result| result.figures.contains_key("raced"));
        assert!(races.len() > 2, "{:?}", races.keys());
        for (name, kept) in races {
            let figure = |key: &str| kept.figures.get(key)?.as_f64();
            let count = |key: &str| figure(key).unwrap_or_default() as usize;
            let findings = RaceFindings {
                trials: Trial::all_of(&kept).expect("a race"),
                wanted: count("wanted"),
                wrong_writes: count("wrong_writes"),
            };
            let mut said = findings.report(&name, String::new());
            // What is measured beside the trials, and words that older results keep.
            said.add([("load_probes", 1.0)]);
            let beside = ["load_probes", "not_won"];
            for (key, figure) in &kept.figures {
                let is_said = beside.contains(&key.as_str()) || said.figures[key] == *figure;
                assert!(is_said, "{name}: {key} is {figure}");
            }
            for [row, ..] in &kept.rows {
                assert!(
                    said.rows.iter().any(|[said, ..]| said == row),
                    "{name}: {row}"
                );
            }
            assert_eq!(said.matrix, kept.matrix, "{name}");
            assert!(said.missed().is_empty(), "{name}: {:?}", said.missed());

            if name != CONTROL {
                let mut spoilt = findings;
                let could_be_won = |trial: &Trial| !trial.is_excused() && trial.available > 1.0;
                let at = spoilt.trials.iter().position(could_be_won);
                let trial = &mut spoilt.trials[at.expect("a trial")];
                (trial.unknown, trial.without_lead) = (1, 1);
                let led = trial
                    .fault
                    .is_none()
                    .then_some("writes by a replica that did not lead");
                let report = spoilt.report(&name, String::new());
                let expected = [Some("won: no node ever Unknown"), led];
                assert!(
                    report
                        .missed()
                        .into_iter()
                        .eq(expected.into_iter().flatten()),
                    "{name}: {:?}",
                    report.missed()
                );
            }
        }
    }
}
