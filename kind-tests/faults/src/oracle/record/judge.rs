//! Judging: at every tick what must be done, at every write whether it may be made.

use std::time::Duration;

use api_server::ObservedWrite;
use serde_json::Value;
use tokio::time::Instant;

use super::{SAMPLES, ShootRecord, keep};
use crate::oracle::disturbances::Disturbances;
use crate::oracle::truth::{Judgement, judge};
use crate::oracle::violations::ViolationKind;
use crate::pace::{CLEAN, DOWN_LIMIT, PROBE_AGE, STOP_DEADLINE, UP_LIMIT, WELL};
use crate::writes::{ScaledDependent, WriteKind, write_kind};

/// All is at 0 so long after a clean outage is beyond doubt. That is 0.25 s after the verdict is
/// possible, and 0.4 s before the first node's end at worst.
const CLEAN_LIMIT: Duration = Duration::from_millis(1500);

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

impl ShootRecord {
    /// Judges the shoot as it is now, about ten times a second.
    pub fn tick(&mut self, disturbances: &Disturbances, now: Instant) -> Vec<Violation> {
        let before = self
            .samples
            .back()
            .is_some_and(|last| last.judgement.must_down);
        let judgement = self.sample(now);
        match (before, judgement.must_down) {
            (false, true) => self.note(now, "outage beyond doubt"),
            (true, false) => self.note(now, "outage no longer beyond doubt"),
            _ => {}
        }
        // Since when nothing has kept any prober from knowing and protecting, and the leader from
        // restoring.
        let able = |since: Option<Instant>| {
            let able = since?.max(self.api?).max(self.watched_from);
            (self.left_alone_since.is_none() && able <= now).then_some(able)
        };
        let guarded = able(disturbances.guarded_since(now));
        let led = able(disturbances.led_since("prober", now));
        let exposed = judgement.must_down && guarded.is_some() && !self.is_safe();
        let stuck = judgement.must_up && led.is_some() && !self.is_restored();
        let began = self.exposed.0.unwrap_or(now);
        let is_clean = guarded.is_some_and(|since| since.max(self.touched_at) + CLEAN <= began);
        let limit = if is_clean { CLEAN_LIMIT } else { DOWN_LIMIT };
        let leeway = disturbances.leeway;
        let exposed = self.exposed.lasted(exposed, limit + leeway, now);
        let stuck = self.stuck.lasted(stuck, UP_LIMIT + leeway, now);
        let mut found = self.pods.tick(disturbances, now);
        for (kind, lasted) in [
            (ViolationKind::MissedOutages, exposed),
            (ViolationKind::NotRestored, stuck),
        ] {
            let text = |lasted| format!("for {lasted:.1?} with complete answers at hand");
            found.extend(lasted.map(|lasted| (kind, text(lasted))));
        }
        found
    }

    /// Judges by how it is now, and remembers that.
    fn sample(&mut self, now: Instant) -> Judgement {
        let judgement = if now < self.unsettled_until {
            Judgement {
                may_down: true,
                may_up: true,
                ..Judgement::default()
            }
        } else {
            judge(&self.leases(now), self.grace)
        };
        let answers = self.api.is_some_and(|clear_from| clear_from <= now);
        let fails = answers && !judgement.may_up;
        self.failing_since = self.failing_since.or(Some(now)).filter(|_| fails);
        // A probe was made in so long a time.
        if self
            .failing_since
            .is_some_and(|since| now - since >= PROBE_AGE)
        {
            self.seen_failing_at = Some(now);
        }
        let sample = Sample {
            at: now,
            judgement,
            answers,
        };
        keep(&mut self.samples, SAMPLES, sample);
        judgement
    }

    /// Judges a write of the watchdog at the moment at which it is applied, and how it is known that
    /// the writer did not lead when its request arrived.
    pub fn written(
        &mut self,
        name: &str,
        write: &ObservedWrite<'_>,
        writer: (Instant, Option<String>),
        disturbances: &Disturbances,
        now: Instant,
    ) -> Option<Violation> {
        let before = write.before.unwrap_or(&Value::Null);
        let [was, is] = [before, write.after].map(ScaledDependent::of);
        self.note(
            now,
            format!("the watchdog writes {name}: {was:?} -> {is:?}"),
        );
        let judged = match write_kind(before, write.after) {
            Ok(kind) => self.judge_write(kind, &was, writer, disturbances, now),
            Err(why) => Err((ViolationKind::WrongMemories, why)),
        };
        self.dependents.insert(name.to_owned(), is);
        let (kind, text) = judged.err()?;
        Some((kind, format!("{name} {text}")))
    }

    fn judge_write(
        &mut self,
        kind: WriteKind,
        was: &ScaledDependent,
        (arrived, leaderless): (Instant, Option<String>),
        disturbances: &Disturbances,
        now: Instant,
    ) -> Result<(), Violation> {
        self.judge_obedience(arrived, disturbances)?;
        let (is_right, wrong): (fn(&Judgement) -> bool, _) = match kind {
            WriteKind::HandsOff => return Ok(()),
            WriteKind::Down | WriteKind::Marked => (
                |judgement| judgement.may_down,
                ViolationKind::WrongScaleDowns,
            ),
            WriteKind::Up => (|judgement| judgement.may_up, ViolationKind::WrongRestores),
        };
        self.sample(now);
        if let Some(leaderless) = leaderless
            && let Some(why) = self.needs_lead(kind, was, arrived)
        {
            let text = format!("{why}, and {leaderless}");
            return Err((ViolationKind::LeaderlessWrites, text));
        }
        // The last complete probe that it can rest on was made while the API server last answered.
        let mut latest = self.samples.iter().rev();
        let answered = latest.find(|sample| sample.at <= arrived && sample.answers);
        let from = answered.map_or(arrived, |sample| sample.at) - disturbances.probe_age(now);
        let recent = self.samples.iter().filter(|sample| sample.at >= from);
        let judged: Vec<bool> = recent.map(|sample| is_right(&sample.judgement)).collect();
        if judged.is_empty() || judged.contains(&true) {
            return Ok(());
        }
        Err((wrong, format!("is written; {:.1?}", self.leases(now))))
    }

    /// Whether a shoot that must be left alone was left alone by the time this arrived.
    fn judge_obedience(
        &self,
        arrived: Instant,
        disturbances: &Disturbances,
    ) -> Result<(), Violation> {
        // What the seed cannot tell is not known; what was seen of it before counts for a minute
        // (D-27).
        let Some((since, seed)) = self.left_alone_since.zip(disturbances.seed) else {
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
            // After an outage that any replica has seen.
            WriteKind::Up => {
                let seen = self.seen_failing_at?;
                let is_soon = arrived < seen + (WELL - PROBE_AGE);
                is_soon.then_some("is restored soon after an outage")
            }
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
