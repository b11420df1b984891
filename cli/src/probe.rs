//! `probe`: one shoot, probed until the verdict is clear; nothing is written.

use std::time::Duration;

use prober::read_only::ReadOnlyProber;
use prober::{Fact, ProbeStatus, Tone, WatchScope, lease_cells};
use prober_core::verdict::Verdict;
use serde::Serialize;

use crate::commands::ProbeArgs;
use crate::output::{self, Progress, lines, paint, table};
use crate::seed::SeedReader;

/// A shoot whose probes fail so often in a row is out of reach.
pub(crate) const FAILURES: u32 = 3;

#[derive(Serialize)]
struct ProbeAnswer {
    namespace: String,
    #[serde(flatten)]
    probe: ProbeStatus,
}

pub(crate) async fn run(args: ProbeArgs) -> anyhow::Result<()> {
    let namespace = args.namespace;
    let seed = SeedReader::open(&args.seed, WatchScope::Shoot(namespace.clone())).await?;
    let state = prober::ShootState::from(&*seed.cluster(&namespace)?);
    let enough = |probe: &ProbeStatus| {
        let failure = probe.failure.as_ref();
        is_clear(probe) || failure.is_some_and(|failure| failure.failed_probes >= FAILURES)
    };
    let Some(probe) = probe_until(&seed.prober, &namespace, args.timeout, enough).await else {
        anyhow::bail!(
            "{namespace} is not probed ({}): {}",
            <&str>::from(&state),
            state.meaning()
        )
    };
    let clear = is_clear(&probe);
    let answer = ProbeAnswer { namespace, probe };
    output::write(&answer, args.seed.output, || text(&answer.probe))?;
    anyhow::ensure!(clear, "no verdict within {:?}", args.timeout);
    Ok(())
}

/// Whether there is a verdict that waiting cannot change.
pub(crate) fn is_clear(probe: &ProbeStatus) -> bool {
    let found = probe.found.as_ref().filter(|_| probe.failure.is_none());
    found.is_some_and(|found| {
        let finding = &found.outcome.finding;
        finding.verdict.aim().is_some() || finding.tally.undecided == 0
    })
}

/// Probes a shoot until `enough`, and says on stderr what is waited for; none when it may not be
/// probed.
pub(crate) async fn probe_until(
    prober: &ReadOnlyProber,
    namespace: &str,
    limit: Duration,
    enough: impl Fn(&ProbeStatus) -> bool,
) -> Option<ProbeStatus> {
    let mut progress = Progress::start(&format!("probing {namespace} ..."));
    let began = tokio::time::Instant::now();
    let update = |probe: &ProbeStatus| {
        let waits_for = match (&probe.failure, &probe.found) {
            _ if enough(probe) => return,
            (Some(failure), _) => {
                format!("{} at {}, trying again", failure.category, failure.stage)
            }
            (None, Some(_)) => "watching the leases until they can be judged".to_owned(),
            (None, None) => return,
        };
        let what = format!("probing {namespace}, {waits_for}");
        progress.update(&what, began.elapsed().as_secs());
    };
    prober.probe(namespace, limit, &enough, update).await
}

pub(crate) fn text(probe: &ProbeStatus) -> String {
    let mut facts = probe.facts();
    let Some(outcome) = probe.found.as_ref().map(|found| &found.outcome) else {
        return lines(&facts);
    };
    if outcome.finding.verdict == Verdict::HoldUndecided {
        let nothing = "nothing before that is decided";
        facts.push(Fact::new(Tone::Soft, "Would be written", nothing));
    } else if probe.would_write.is_empty() {
        facts.push(Fact::new(Tone::Soft, "Would be written", "nothing"));
    }
    let leases = outcome.leases.iter().map(|lease| {
        let (tone, [node, age, state, clock]) = lease_cells(lease);
        [node, age, paint(tone, &state), clock]
    });
    let mut text = lines(&facts);
    if !outcome.leases.is_empty() {
        let leases = table(["NODE", "AGE", "STATE", "CLOCK"], leases.collect());
        text.push_str(&format!("\n{leases}"));
    }
    text
}
