//! `probe`: one shoot, looked at until the verdict is clear; nothing is written.

use std::fmt::Write;

use prober::seed::reach::Reach;
use prober::shoot_statuses::Intended;
use prober::status::{Failure, Found, ProbeStatus};
use serde::Serialize;

use crate::output::{Progress, bad, good, plain, table, warn};
use crate::{commands, output, seed, why};

/// A shoot that cannot be asked so often in a row is said to be out of reach.
pub(crate) const FAILURES: u32 = 3;

#[derive(Serialize)]
struct Answer {
    namespace: String,
    #[serde(flatten)]
    probe: ProbeStatus,
}

pub(crate) async fn run(args: commands::Probe) -> anyhow::Result<()> {
    let namespace = args.namespace;
    let seed = seed::read(&args.access, Reach::Shoot(namespace.clone())).await?;
    let cluster = seed.cluster(&namespace)?;
    let (state, because) = why::state(&cluster);
    let mut progress = Progress::new();
    let began = tokio::time::Instant::now();
    let progress_of = |probe: &ProbeStatus| {
        let what = match (&probe.failure, is_clear(probe)) {
            (Some(failure), _) => format!("{} at {}", failure.category, failure.stage),
            (None, true) => "done".to_owned(),
            (None, false) => "watching the leases until their stamps can be believed".to_owned(),
        };
        progress.say(format!("looking at {namespace} for {} s: {what}", began.elapsed().as_secs()));
    };
    let probe = seed.prober.probe(&namespace, args.timeout, is_enough, progress_of).await;
    drop(progress);
    let Some(probe) = probe else { anyhow::bail!("{namespace} is not probed ({state}): {because}") };
    let clear = is_clear(&probe);
    let answer = Answer { namespace, probe };
    output::write(&answer, args.output, || report(&answer.probe))?;
    anyhow::ensure!(clear, "no verdict within {:?}", args.timeout);
    Ok(())
}

/// Whether there is a verdict that waiting cannot change.
fn is_clear(probe: &ProbeStatus) -> bool {
    probe.failure.is_none() && probe.found.as_ref().is_some_and(|found| found.verdict != "hold_undecided")
}

fn is_enough(probe: &ProbeStatus) -> bool {
    is_clear(probe) || probe.failure.as_ref().is_some_and(|failure| failure.failed_probes >= FAILURES)
}

pub(crate) fn report(probe: &ProbeStatus) -> String {
    let mut text = String::new();
    if let Some(Failure { stage, category, message, .. }) = &probe.failure {
        let failed = warn(&format!("The last look told nothing ({category} at {stage}): {}", plain(message)));
        let _ = writeln!(text, "{failed}\nNothing is concluded from that.");
    }
    if let Some(found) = &probe.found {
        text.push_str(&numbers(found));
    }
    for Intended { kind, name, before, after } in &probe.would_write {
        let _ = writeln!(text, "Would be written: {kind}/{name} from {before} to {after} replicas");
    }
    if probe.found.is_some() && probe.would_write.is_empty() {
        text.push_str("Nothing would be written.\n");
    }
    text
}

fn numbers(found: &Found) -> String {
    let Found { verdict, candidates, expired, undecided, .. } = *found;
    let sentence = format!("{verdict}: {}", why::verdict(verdict));
    let sentence = match verdict {
        "scale_down" => bad(&sentence),
        "scale_up" | "scale_up_held_down" => good(&sentence),
        _ => warn(&sentence),
    };
    let mut text = format!("Verdict:   {sentence}\n");
    let mut leases = format!("{expired} of {candidates} expired (after {} s without renewal)", found.expired_after_seconds);
    if undecided > 0 {
        let _ = write!(leases, ", {undecided} undecided");
    }
    if candidates > 1 {
        let _ = write!(leases, "; an outage from {:.0} % on", found.fraction * 100.0);
    }
    let _ = writeln!(text, "Leases:    {leases}");
    if !found.excluded.is_empty() {
        let excluded: Vec<_> =
            found.excluded.iter().map(|(reason, count)| format!("{count} {}", reason.replace('_', " "))).collect();
        let _ = writeln!(text, "Excluded:  {}", excluded.join(", "));
    }
    if !found.leases.is_empty() {
        let rows: Vec<_> = found
            .leases
            .iter()
            .map(|lease| {
                let state = if lease.state == "valid" { good(lease.state) } else { bad(lease.state) };
                let clock = if lease.skew_seconds == 0.0 { String::new() } else { format!("{:+.0}s", -lease.skew_seconds) };
                vec![lease.node.clone(), format!("{:.1}s", lease.age_seconds), state, clock]
            })
            .collect();
        let _ = write!(text, "\n{}\n", table(&["NODE", "AGE", "STATE", "CLOCK"], &rows));
    }
    text
}
