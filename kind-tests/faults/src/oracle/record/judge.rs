//! Judging: at every tick what must be done, at every write whether it may be made.

use std::time::Duration;

use faults::writes::{ScaledDependent, WriteKind, way};
use serde_json::Value;
use tokio::time::Instant;

use super::{NodeState, SAMPLES, ShootRecord, keep};
use crate::oracle::disturbances::DisturbanceSnapshot;
use crate::oracle::ledger::ViolationKind;
use crate::oracle::truth::{Judgement, judge};
use crate::pace::{BEAT, BUSY, CLEAN, DOWN_LIMIT, STOP_DEADLINE, UP_LIMIT};

/// An outage that is in doubt for so long is over.
const PAUSE: Duration = Duration::from_secs(1);
/// A clean outage is beyond doubt 0.25 s after the verdict is possible, and 0.4 s before the first
/// node's end at worst. On a busy machine an answer within this time is in time all the same.
const LATE: Duration = Duration::from_millis(1500);

/// What the oracle finds.
pub type Violation = (ViolationKind, String);

/// The oracle's view at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub at: Instant,
    pub judgement: Judgement,
    /// Whether the shoot's API server could be asked.
    pub answers: bool,
}

/// One outage, from the moment from which it is beyond doubt until it no longer is.
#[derive(Clone, Copy, Debug)]
pub struct Episode {
    began: Instant,
    /// When it was last beyond doubt.
    last: Instant,
    /// Whether nothing was wrong for a while before.
    pub clean: bool,
    /// When kube-controller-manager would give the first node up.
    first_end: Option<Instant>,
    /// When all was at 0 first.
    safe_at: Option<Instant>,
    /// How late this machine was until then.
    lag: Duration,
}

impl Episode {
    /// Whether all was at 0 before the first node's end.
    pub fn met_in_time(&self) -> bool {
        self.safe_at
            .zip(self.first_end)
            .is_some_and(|(safe, end)| safe <= end)
    }

    /// From its being beyond doubt to all being at 0.
    pub fn latency(&self) -> Option<Duration> {
        Some(self.safe_at?.saturating_duration_since(self.began))
    }

    /// A clean outage must be met before the first node's end.
    fn finding(&self) -> Option<Violation> {
        let latency = self
            .latency()
            .filter(|latency| self.clean && !self.met_in_time() && *latency > LATE + self.lag)?;
        let [latency, lag] = [latency, self.lag].map(|time| time.as_secs_f64());
        let text = format!(
            "all was at 0 {latency:.1} s after the outage was beyond doubt, on a machine {lag:.1} s late"
        );
        Some((ViolationKind::LateAnswers, text))
    }
}

/// A write of the watchdog to a dependent.
pub struct WatchdogWrite<'a> {
    pub name: &'a str,
    pub before: &'a Value,
    pub after: &'a Value,
    /// When its request arrived.
    pub arrived: Instant,
    /// How it is known that the writer did not lead then; none when it did.
    pub leaderless: Option<String>,
}

impl ShootRecord {
    /// Looks at the shoot as it is now, about ten times a second: what is found, and the outage
    /// that is over.
    pub fn tick(
        &mut self,
        disturbances: DisturbanceSnapshot,
        now: Instant,
    ) -> (Vec<Violation>, Option<Episode>) {
        let (judgement, api) = self.look(disturbances, now);
        // Since when nothing has kept any prober from knowing and protecting, and the leader from
        // restoring.
        let left_alone = self.stopped_since.is_some() || self.paused_since.is_some();
        let able = |since: Option<Instant>| {
            let both = since.zip(api).filter(|_| !left_alone);
            both.map(|(since, api)| since.max(api).max(self.watched_from))
                .filter(|able| *able <= now)
        };
        let (guarded, led) = (
            able(disturbances.guarded_since),
            able(disturbances.clear_since),
        );
        let over = self.follow(judgement, guarded, disturbances.lag, now);
        let exposed = judgement.must_down && guarded.is_some() && !self.is_safe();
        let exposed = lasted(
            &mut self.exposed_since,
            exposed,
            DOWN_LIMIT + disturbances.lag,
            now,
        );
        let stuck = judgement.must_up && led.is_some() && !self.is_restored();
        let stuck = lasted(
            &mut self.stuck_since,
            stuck,
            UP_LIMIT + disturbances.lag,
            now,
        );
        let missed = [
            (
                ViolationKind::MissedOutages,
                exposed,
                "an outage",
                "not all is at 0",
            ),
            (
                ViolationKind::NotRestored,
                stuck,
                "healthy",
                "not all is restored",
            ),
        ];
        let missed = missed
            .into_iter()
            .filter_map(|(kind, late, what, lacking)| {
                Some((
                    kind,
                    format!(
                        "{what} for {:.1} s with complete answers at hand, and {lacking}",
                        late?.as_secs_f64()
                    ),
                ))
            });
        let late = over.and_then(|over| over.finding());
        let findings: Vec<Violation> = missed
            .chain(late)
            .chain(self.plane.tick(disturbances, now))
            .collect();
        for (_, text) in &findings {
            self.note(now, format!("ORACLE: {text}"));
        }
        (findings, over)
    }

    /// Judges by how it is now, and remembers that.
    fn look(
        &mut self,
        disturbances: DisturbanceSnapshot,
        now: Instant,
    ) -> (Judgement, Option<Instant>) {
        let since = disturbances
            .guarded_since
            .unwrap_or(now)
            .max(self.watched_from);
        let mut judgement = judge(&self.leases(since, now), self.grace);
        if now < self.unsettled_until {
            judgement = Judgement {
                may_down: true,
                may_up: true,
                must_down: false,
                must_up: false,
            };
        }
        let api = self.api.clear_since(now);
        keep(
            &mut self.samples,
            SAMPLES,
            Sample {
                at: now,
                judgement,
                answers: api.is_some(),
            },
        );
        (judgement, api)
    }

    /// Follows an outage; the one that is over now.
    fn follow(
        &mut self,
        judgement: Judgement,
        able: Option<Instant>,
        lag: Duration,
        now: Instant,
    ) -> Option<Episode> {
        if !judgement.must_down {
            let over = self.episode.take_if(|episode| now - episode.last > PAUSE)?;
            self.note(
                now,
                format!("outage over, all at 0 after {:.1?}", over.latency()),
            );
            return Some(over);
        }
        let undisturbed = lag < BUSY && self.raised_at.is_none_or(|raised| now - raised >= CLEAN);
        let safe = self.is_safe() && !self.dependents.is_empty();
        if self.episode.is_none() {
            let counted = self.nodes.values().filter(|node| node.counts);
            let first_end = counted.map(|node| node.renewed + self.grace).min();
            let clean = able.is_some_and(|able| now - able >= CLEAN) && !safe && undisturbed;
            self.note(
                now,
                format!("outage beyond doubt{}", if clean { ", clean" } else { "" }),
            );
            self.episode = Some(Episode {
                began: now,
                last: now,
                clean,
                first_end,
                safe_at: None,
                lag: Duration::ZERO,
            });
        }
        let episode = self.episode.as_mut()?;
        episode.last = now;
        if safe {
            episode.safe_at.get_or_insert(now);
        }
        if episode.safe_at.is_none_or(|safe| now - safe < PAUSE) {
            episode.lag = episode.lag.max(lag);
        }
        // What happens later in it may excuse a late answer.
        episode.clean &= (able.is_some() && undisturbed) || episode.safe_at.is_some();
        None
    }

    /// Judges a write at the moment at which it is applied.
    pub fn written(
        &mut self,
        write: &WatchdogWrite<'_>,
        disturbances: DisturbanceSnapshot,
        now: Instant,
    ) -> Option<Violation> {
        let (was, is) = (
            ScaledDependent::of(write.before),
            ScaledDependent::of(write.after),
        );
        self.note(
            now,
            format!("the watchdog writes {}: {was} -> {is}", write.name),
        );
        let (kind, text) = self.judge_write(write, &was, disturbances, now).err()?;
        let text = format!("{} {text}", write.name);
        self.note(now, format!("ORACLE: {text}"));
        Some((kind, text))
    }

    fn judge_write(
        &mut self,
        write: &WatchdogWrite<'_>,
        was: &ScaledDependent,
        disturbances: DisturbanceSnapshot,
        now: Instant,
    ) -> Result<(), Violation> {
        let way = way(write.before, write.after).map_err(|why| {
            (
                ViolationKind::WrongMemories,
                format!("is written wrongly: {why}"),
            )
        })?;
        let arrived = write.arrived;
        let deadline = STOP_DEADLINE + disturbances.lag;
        for (since, what) in [
            (self.stopped_since, "must not be probed"),
            (self.paused_since, "is paused"),
        ] {
            // What the seed cannot tell is not known; what was seen of it before counts for a
            // minute (D-27).
            let known = since
                .zip(disturbances.seed_since)
                .map(|(since, seed)| since.max(seed));
            if let Some(known) = known.filter(|known| arrived > *known + deadline) {
                let late = (arrived - known).as_secs_f64();
                return Err((
                    ViolationKind::DisobedientWrites,
                    format!("is written {late:.1} s after the shoot {what}"),
                ));
            }
        }
        let (right, kind, what): (fn(&Judgement) -> bool, _, _) = match way {
            WriteKind::HandsOff => return Ok(()),
            WriteKind::Down | WriteKind::Marked => (
                |judgement| judgement.may_down,
                ViolationKind::WrongScaleDowns,
                "scaled down although the nodes renewed",
            ),
            WriteKind::Up => (
                |judgement| judgement.may_up,
                ViolationKind::WrongRestores,
                "restored during an outage",
            ),
        };
        self.look(disturbances, now);
        if let Some(leaderless) = &write.leaderless {
            let why = self.judge_leaderless(way, was, arrived);
            why.map_err(|why| {
                (
                    ViolationKind::LeaderlessWrites,
                    format!("{why}, and {leaderless}"),
                )
            })?;
        }
        // The last complete look that it can rest on was made while the API server last answered.
        let answered = self
            .samples
            .iter()
            .rev()
            .find(|sample| sample.at <= arrived && sample.answers);
        let from = answered.map_or(arrived, |sample| sample.at) - disturbances.finding_age();
        let mut window = self
            .samples
            .iter()
            .filter(|sample| sample.at >= from)
            .peekable();
        if window.peek().is_none() || window.any(|sample| right(&sample.judgement)) {
            return Ok(());
        }
        let silent: Vec<String> = self
            .nodes
            .iter()
            .map(|(name, node)| node_line(name, node, now))
            .collect();
        Err((kind, format!("is {what}; {}", silent.join(", "))))
    }

    /// Whether a prober may write so without the lead (D-50): it protects, and restores what
    /// carries the marker when the shoot has been well for long.
    fn judge_leaderless(
        &self,
        way: WriteKind,
        was: &ScaledDependent,
        arrived: Instant,
    ) -> Result<(), &'static str> {
        match way {
            WriteKind::Down | WriteKind::HandsOff => Ok(()),
            WriteKind::Marked => Err("gets its marker back"),
            WriteKind::Up if was.replicas > 0 => Err("is repaired"),
            WriteKind::Up if !was.marker => Err("is restored without carrying the marker"),
            WriteKind::Up if self.was_ill_lately(arrived) => {
                Err("is restored soon after an outage")
            }
            WriteKind::Up => Ok(()),
        }
    }
}

/// For how long a condition has lasted, once it has for longer than the limit; reported once, then
/// counted again.
fn lasted(
    since: &mut Option<Instant>,
    holds: bool,
    limit: Duration,
    now: Instant,
) -> Option<Duration> {
    let begin = since.filter(|_| holds).unwrap_or(now);
    let lasted = Some(now - begin).filter(|lasted| *lasted > limit);
    *since = holds.then_some(if lasted.is_some() { now } else { begin });
    lasted
}

fn node_line(name: &str, node: &NodeState, now: Instant) -> String {
    let silent = now.saturating_duration_since(node.renewed);
    let words = [
        (node.clock.differs(), " (skewed)"),
        (!node.counts, " (does not count)"),
        (node.cut && silent > BEAT, " (cut)"),
    ];
    let words: String = words
        .iter()
        .filter(|(holds, _)| *holds)
        .map(|(_, word)| *word)
        .collect();
    format!("{name} silent for {:.1} s{words}", silent.as_secs_f64())
}

#[cfg(test)]
mod tests;
