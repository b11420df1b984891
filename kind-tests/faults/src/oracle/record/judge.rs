//! Judging: at every tick what must be done, at every write whether it may be made.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::{NodeState, SAMPLES, ShootRecord, keep};
use crate::oracle::disturbances::DisturbanceSnapshot;
use crate::oracle::truth::{Judgement, judge};
use crate::oracle::violations::ViolationKind;
use crate::pace::{BEAT, CLEAN, DOWN_LIMIT, STOP_DEADLINE, UP_LIMIT};
use crate::writes::{ScaledDependent, WriteKind, write_kind};

/// An outage that is in doubt for so long is over.
const PAUSE: Duration = Duration::from_secs(1);
/// A clean outage is beyond doubt 0.25 s after the verdict is possible, and 0.4 s before the first
/// node's end at worst. An answer within this time is in time all the same.
const LATE: Duration = Duration::from_millis(1500);

/// What the oracle finds.
pub type Violation = (ViolationKind, String);

/// What the oracle knew at one moment.
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
    clean: bool,
    /// When kube-controller-manager would give the first node up.
    first_end: Option<Instant>,
    /// When all was at 0 first.
    safe_at: Option<Instant>,
}

impl Episode {
    /// A clean outage must be met before the first node's end.
    fn violation(&self, leeway: Duration) -> Option<Violation> {
        let (safe, end) = self.safe_at.zip(self.first_end)?;
        let latency = safe.saturating_duration_since(self.began);
        let is_late = self.clean && safe > end && latency > LATE + leeway;
        let text = format!("all was at 0 {latency:.1?} after the outage was beyond doubt");
        is_late.then_some((ViolationKind::LateAnswers, text))
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
    /// Judges the shoot as it is now, about ten times a second: what is found, and whether an outage
    /// is over.
    pub fn tick(
        &mut self,
        disturbances: DisturbanceSnapshot,
        now: Instant,
    ) -> (Vec<Violation>, bool) {
        let (judgement, api) = self.sample(now);
        // Since when nothing has kept any prober from knowing and protecting, and the leader from
        // restoring.
        let able = |since: Option<Instant>| {
            let able = since?.max(api?).max(self.watched_from);
            (self.left_alone_since.is_none() && able <= now).then_some(able)
        };
        let guarded = able(disturbances.guarded_since);
        let led = able(disturbances.clear_since);
        let leeway = disturbances.leeway;
        let over = self.follow(judgement, guarded, now);
        let exposed = judgement.must_down && guarded.is_some() && !self.is_safe();
        let stuck = judgement.must_up && led.is_some() && !self.is_restored();
        let exposed = self.exposed.lasted(exposed, DOWN_LIMIT + leeway, now);
        let stuck = self.stuck.lasted(stuck, UP_LIMIT + leeway, now);
        let mut found = self.pods.tick(disturbances, now);
        found.extend(over.and_then(|over| over.violation(leeway)));
        for (kind, lasted, what, lacking) in [
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
        ] {
            if let Some(seconds) = lasted.map(|lasted| lasted.as_secs_f64()) {
                let text = format!(
                    "{what} for {seconds:.1} s with complete answers at hand, and {lacking}"
                );
                found.push((kind, text));
            }
        }
        for (_, text) in &found {
            self.note(now, format!("ORACLE: {text}"));
        }
        (found, over.is_some())
    }

    /// Judges by how it is now, and remembers that. Also since when the API server has answered.
    fn sample(&mut self, now: Instant) -> (Judgement, Option<Instant>) {
        let judgement = if now < self.unsettled_until {
            Judgement {
                may_down: true,
                may_up: true,
                ..Judgement::default()
            }
        } else {
            judge(&self.leases(now), self.grace)
        };
        let api = self.api.clear_since(now);
        let sample = Sample {
            at: now,
            judgement,
            answers: api.is_some(),
        };
        keep(&mut self.samples, SAMPLES, sample);
        (judgement, api)
    }

    /// Follows an outage; the one that is over now.
    fn follow(
        &mut self,
        judgement: Judgement,
        able: Option<Instant>,
        now: Instant,
    ) -> Option<Episode> {
        if !judgement.must_down {
            let over = self.episode.take_if(|episode| now - episode.last > PAUSE)?;
            self.note(now, "outage over");
            return Some(over);
        }
        let undisturbed = self.raised_at.is_none_or(|raised| now - raised >= CLEAN);
        let safe = self.is_safe() && !self.dependents.is_empty();
        if self.episode.is_none() {
            let counted = self.nodes.values().filter(|node| node.counts);
            let first_end = counted.map(|node| node.renewed + self.grace).min();
            let clean = able.is_some_and(|able| now - able >= CLEAN) && !safe && undisturbed;
            let and_clean = if clean { ", clean" } else { "" };
            self.note(now, format!("outage beyond doubt{and_clean}"));
            self.episode = Some(Episode {
                began: now,
                last: now,
                clean,
                first_end,
                safe_at: None,
            });
        }
        let episode = self.episode.as_mut()?;
        episode.last = now;
        if safe {
            episode.safe_at.get_or_insert(now);
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
        let name = write.name;
        let [was, is] = [write.before, write.after].map(ScaledDependent::of);
        self.note(now, format!("the watchdog writes {name}: {was} -> {is}"));
        let judged = self.judge_write(write, &was, disturbances, now);
        self.dependents.insert(name.to_owned(), is);
        let (kind, text) = judged.err()?;
        let text = format!("{name} {text}");
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
        let kind = write_kind(write.before, write.after).map_err(|why| {
            let text = format!("is written wrongly: {why}");
            (ViolationKind::WrongMemories, text)
        })?;
        let arrived = write.arrived;
        self.judge_obedience(arrived, disturbances)?;
        let (is_right, wrong, what): (fn(&Judgement) -> bool, _, _) = match kind {
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
        self.sample(now);
        if let Some(leaderless) = &write.leaderless
            && let Some(why) = self.needs_lead(kind, was, arrived)
        {
            let text = format!("{why}, and {leaderless}");
            return Err((ViolationKind::LeaderlessWrites, text));
        }
        // The last complete probe that it can rest on was made while the API server last answered.
        let mut latest = self.samples.iter().rev();
        let answered = latest.find(|sample| sample.at <= arrived && sample.answers);
        let from = answered.map_or(arrived, |sample| sample.at) - disturbances.probe_age();
        let recent = self.samples.iter().filter(|sample| sample.at >= from);
        let judged: Vec<bool> = recent.map(|sample| is_right(&sample.judgement)).collect();
        if judged.is_empty() || judged.contains(&true) {
            return Ok(());
        }
        let nodes = self.nodes.iter();
        let silent: Vec<String> = nodes
            .map(|(name, node)| node_line(name, node, now))
            .collect();
        Err((wrong, format!("is {what}; {}", silent.join(", "))))
    }

    /// Whether a shoot that must be left alone was left alone by the time this arrived.
    fn judge_obedience(
        &self,
        arrived: Instant,
        disturbances: DisturbanceSnapshot,
    ) -> Result<(), Violation> {
        // What the seed cannot tell is not known; what was seen of it before counts for a minute
        // (D-27).
        let Some((since, seed)) = self.left_alone_since.zip(disturbances.seed_since) else {
            return Ok(());
        };
        let late = arrived.saturating_duration_since(since.max(seed));
        if late <= STOP_DEADLINE + disturbances.leeway {
            return Ok(());
        }
        let late = late.as_secs_f64();
        let text = format!("is written {late:.1} s after the shoot was to be left alone");
        Err((ViolationKind::DisobedientWrites, text))
    }

    /// Why a prober may not write so without the lead (D-50): it protects, and restores what
    /// carries the marker when the shoot has been well for long.
    fn needs_lead(
        &self,
        kind: WriteKind,
        was: &ScaledDependent,
        arrived: Instant,
    ) -> Option<&'static str> {
        match kind {
            WriteKind::Down | WriteKind::HandsOff => None,
            WriteKind::Marked => Some("gets its marker back"),
            WriteKind::Up if was.replicas > 0 => Some("is repaired"),
            WriteKind::Up if !was.marker => Some("is restored without carrying the marker"),
            WriteKind::Up => self
                .was_in_outage_lately(arrived)
                .then_some("is restored soon after an outage"),
        }
    }
}

/// Since when a condition has held.
#[derive(Debug, Default)]
pub struct LastingCondition(Option<Instant>);

impl LastingCondition {
    /// For how long it has lasted, once it has for longer than the limit; reported once, then
    /// counted again.
    fn lasted(&mut self, holds: bool, limit: Duration, now: Instant) -> Option<Duration> {
        let begin = self.0.filter(|_| holds).unwrap_or(now);
        let lasted = Some(now - begin).filter(|lasted| *lasted > limit);
        self.0 = holds.then_some(if lasted.is_some() { now } else { begin });
        lasted
    }
}

fn node_line(name: &str, node: &NodeState, now: Instant) -> String {
    let silent = now.saturating_duration_since(node.renewed);
    let mut line = format!("{name} silent for {:.1} s", silent.as_secs_f64());
    for (holds, words) in [
        (!node.counts, " (does not count)"),
        (node.cut && silent > BEAT, " (cut)"),
    ] {
        line += if holds { words } else { "" };
    }
    line
}
