//! `probe`: one shoot, looked at until the verdict is clear; nothing is written.

use std::fmt::Write;
use std::time::Duration;

use prober::observability::shoot_statuses::Failure;
use prober::observability::status::{Found, ProbeStatus};
use prober::read_only::ReadOnlyProber;
use prober::seed::watch_scope::WatchScope;
use prober_core::in_seconds;
use prober_core::lease::LeaseState;
use prober_core::shoot::Intended;
use prober_core::verdict::{Tally, Verdict};
use prober_core::zones::LostZone;
use serde::Serialize;

use crate::output::{Progress, bad, good, line, plain, table, warn};
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
    let seed = seed::read(&args.access, WatchScope::Shoot(namespace.clone())).await?;
    let cluster = seed.cluster(&namespace)?;
    let (state, because) = why::state(&cluster);
    let failed = |probe: &ProbeStatus| {
        probe
            .failure
            .as_ref()
            .is_some_and(|failure| failure.failed_probes >= FAILURES)
    };
    let probe = look(seed.prober, &namespace, args.timeout, |probe| {
        is_clear(probe) || failed(probe)
    })
    .await;
    let Some(probe) = probe else {
        anyhow::bail!("{namespace} is not probed ({state}): {because}")
    };
    let clear = is_clear(&probe);
    let answer = Answer { namespace, probe };
    output::write(&answer, args.access.output, || report(&answer.probe))?;
    anyhow::ensure!(clear, "no verdict within {:?}", args.timeout);
    Ok(())
}

/// Whether there is a verdict that waiting cannot change.
pub(crate) fn is_clear(probe: &ProbeStatus) -> bool {
    let decided = |Found { finding, .. }: &Found| {
        finding.verdict.aim().is_some() || finding.tally.undecided == 0
    };
    probe.failure.is_none() && probe.found.as_ref().is_some_and(decided)
}

/// Looks at a shoot until `enough`, and says on stderr what is waited for; none when it may not be
/// probed.
pub(crate) async fn look(
    prober: ReadOnlyProber,
    namespace: &str,
    limit: Duration,
    enough: impl Fn(&ProbeStatus) -> bool,
) -> Option<ProbeStatus> {
    let mut progress = Progress::saying(&format!("looking at {namespace} ..."));
    let began = tokio::time::Instant::now();
    let tell = |probe: &ProbeStatus| {
        let what = match (&probe.failure, &probe.found) {
            _ if enough(probe) => return,
            (Some(failure), _) => {
                format!("{} at {}, trying again", failure.category, failure.stage)
            }
            (None, Some(_)) => "watching the leases until they can be judged".to_owned(),
            (None, None) => return,
        };
        progress.tell(
            &format!("looking at {namespace}, {what}"),
            began.elapsed().as_secs(),
        );
    };
    prober.probe(namespace, limit, &enough, tell).await
}

pub(crate) fn report(probe: &ProbeStatus) -> String {
    let mut text = String::new();
    if let Some(Failure {
        stage,
        category,
        message,
        ..
    }) = &probe.failure
    {
        let failed = warn(&format!(
            "The last probe was not complete ({category} at {stage}): {}",
            plain(message)
        ));
        let _ = writeln!(text, "{failed}\nNothing is concluded from that.");
    }
    if let Some(found) = &probe.found {
        text.push_str(&numbers(found));
    }
    for Intended {
        kind,
        name,
        before,
        after,
    } in &probe.would_write
    {
        let _ = writeln!(
            text,
            "Would be written: {kind}/{name} from {before} to {after} replicas"
        );
    }
    match &probe.found {
        Some(found) if found.finding.verdict == Verdict::HoldUndecided => {
            text.push_str("Nothing would be written before that is decided.\n")
        }
        Some(_) if probe.would_write.is_empty() => text.push_str("Nothing would be written.\n"),
        _ => {}
    }
    text
}

fn numbers(Found { finding: found, .. }: &Found) -> String {
    let (
        verdict,
        Tally {
            candidates,
            expired,
            undecided,
        },
    ) = (found.verdict.into_str(), found.tally);
    let sentence = format!("{verdict}: {}", why::verdict(verdict));
    let sentence = match verdict {
        "scale_down" => bad(&sentence),
        "scale_up" | "scale_up_held_down" => good(&sentence),
        _ => warn(&sentence),
    };
    let mut text = line("Verdict", &sentence);
    let mut leases = format!(
        "{expired} of {candidates} expired (after {} s without renewal)",
        in_seconds(found.grace.threshold())
    );
    if undecided > 0 {
        let _ = write!(leases, ", {undecided} undecided");
    }
    if candidates > 1 {
        let _ = write!(
            leases,
            "; an outage from {:.0} % on",
            found.fraction * 100.0
        );
    }
    text.push_str(&line("Leases", &leases));
    if !found.excluded.is_empty() {
        let excluded: Vec<_> = found
            .excluded
            .iter()
            .map(|(reason, count)| format!("{count} {}", reason.replace('_', " ")))
            .collect();
        text.push_str(&line("Excluded", &excluded.join(", ")));
    }
    for LostZone {
        zone,
        candidates,
        expired,
    } in &found.lost_zones
    {
        let lost = format!(
            "{} is lost: {expired} of its {candidates} leases expired; nothing is scaled for that",
            plain(zone)
        );
        text.push_str(&line("Zone", &warn(&lost)));
    }
    if !found.leases.is_empty() {
        let rows: Vec<_> = found
            .leases
            .iter()
            .map(|lease| {
                let (age, skew) = (in_seconds(lease.age), in_seconds(lease.skew));
                let state = if lease.state == LeaseState::Valid {
                    good("valid")
                } else {
                    bad(lease.state.into_str())
                };
                let clock = if skew == 0.0 {
                    String::new()
                } else {
                    format!("{:+.0}s", -skew)
                };
                vec![lease.node.clone(), format!("{age:.1}s"), state, clock]
            })
            .collect();
        let _ = write!(
            text,
            "\n{}\n",
            table(&["NODE", "AGE", "STATE", "CLOCK"], &rows)
        );
    }
    text
}
