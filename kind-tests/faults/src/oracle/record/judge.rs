//! Judging: at every tick what must be done, at every write whether it may be made.

use std::time::Duration;

use faults::writes::{Dependent, Way, way};
use serde_json::Value;
use tokio::time::Instant;

use super::{Arrival, Episode, Record, SAMPLES, Sample};
use crate::oracle::disturbances::Reading;
use crate::oracle::ledger::Kind;
use crate::oracle::truth::{Judgement, judge};
use crate::pace::{BEAT, BUSY, CLEAN, DOWN_LIMIT, OBEDIENCE, UP_LIMIT};

/// How long a write may be on its way inside of the seed, delayed by a fault.
const UNDER_WAY: Duration = Duration::from_secs(8);
/// An outage that is in doubt for so long is over.
const PAUSE: Duration = Duration::from_secs(1);

/// What the oracle finds.
pub type Finding = (Kind, String);

/// What a tick brought.
#[derive(Debug, Default)]
pub struct Tick {
    pub findings: Vec<Finding>,
    /// An outage that is over.
    pub over: Option<Episode>,
}

impl Record {
    /// Looks at the shoot as it is now. To be called about ten times a second.
    pub fn tick(&mut self, disturbances: Reading, now: Instant) -> Tick {
        let (judgement, api) = self.look(disturbances, now);
        // Since when nothing has kept any prober from knowing and protecting, and the leader from restoring.
        let left_alone = self.stopped_since.is_some() || self.paused_since.is_some();
        let able = |since: Option<Instant>| {
            let both = since.zip(api).filter(|_| !left_alone);
            both.map(|(since, api)| since.max(api).max(self.watched_from)).filter(|able| *able <= now)
        };
        let (guarded, led) = (able(disturbances.guarded_since), able(disturbances.clear_since));
        let mut tick = Tick { findings: Vec::new(), over: self.follow(judgement, guarded, disturbances.lag, now) };
        let exposed = judgement.must_down && guarded.is_some() && !self.is_safe();
        let exposed = lasted(&mut self.exposed_since, exposed, DOWN_LIMIT + disturbances.lag, now);
        let stuck = judgement.must_up && led.is_some() && !self.is_restored();
        let stuck = lasted(&mut self.stuck_since, stuck, UP_LIMIT + disturbances.lag, now);
        for (kind, late, what, lacking) in [
            (Kind::Missed, exposed, "an outage", "not all is at 0"),
            (Kind::NotRestored, stuck, "healthy", "not all is restored"),
        ] {
            let Some(late) = late else { continue };
            let told = format!("{what} for {:.1} s with complete answers at hand, and {lacking}", late.as_secs_f64());
            self.note(now, format!("ORACLE: {told}"));
            tick.findings.push((kind, told));
        }
        tick
    }

    /// Judges by how it is now, and remembers that.
    fn look(&mut self, disturbances: Reading, now: Instant) -> (Judgement, Option<Instant>) {
        let since = disturbances.guarded_since.unwrap_or(now).max(self.watched_from);
        let mut judgement = judge(&self.leases(since, now), self.grace);
        if now < self.unsettled_until {
            judgement = Judgement { may_down: true, may_up: true, must_down: false, must_up: false };
        }
        let api = self.api.clear_since(now);
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { at: now, judgement, answers: api.is_some() });
        (judgement, api)
    }

    /// Follows an outage; the one that is over now.
    fn follow(&mut self, judgement: Judgement, able: Option<Instant>, lag: Duration, now: Instant) -> Option<Episode> {
        if judgement.must_down {
            let undisturbed = lag < BUSY && self.raised_at.is_none_or(|raised| now - raised >= CLEAN);
            let safe = self.is_safe() && !self.dependents.is_empty();
            if self.episode.is_none() {
                let counted = self.nodes.values().filter(|node| node.backed && node.counts);
                let first_end = counted.map(|node| node.renewed + self.grace).min();
                let clean = able.is_some_and(|able| now - able >= CLEAN) && !safe && undisturbed;
                self.note(now, format!("outage beyond doubt{}", if clean { ", clean" } else { "" }));
                self.episode = Some(Episode { began: now, last: now, clean, first_end, safe_at: None, lag: Duration::ZERO });
            }
            if let Some(episode) = &mut self.episode {
                episode.last = now;
                if safe {
                    episode.safe_at.get_or_insert(now);
                }
                if episode.safe_at.is_none_or(|safe| now - safe < PAUSE) {
                    episode.lag = episode.lag.max(lag);
                }
                // What happens later in it may excuse a late answer.
                episode.clean &= (able.is_some() && undisturbed) || episode.safe_at.is_some();
            }
            return None;
        }
        let over = self.episode.filter(|episode| now - episode.last > PAUSE)?;
        self.episode = None;
        self.note(now, format!("outage over, met {:?}", over.met()));
        Some(over)
    }

    /// Judges a write of the watchdog to a dependent at the moment at which it is applied.
    pub fn written(&mut self, name: &str, before: &Value, after: &Value, disturbances: Reading, now: Instant) -> Option<Finding> {
        let (was, is) = (Dependent::of(before), Dependent::of(after));
        self.note(now, format!("the watchdog writes {name}: {was} -> {is}"));
        let finding = self.judge_write(name, before, after, disturbances, now).err();
        if let Some((_, told)) = &finding {
            self.note(now, format!("ORACLE: {told}"));
        }
        finding
    }

    fn judge_write(
        &mut self,
        name: &str,
        before: &Value,
        after: &Value,
        disturbances: Reading,
        now: Instant,
    ) -> Result<(), Finding> {
        let way = way(before, after).map_err(|why| (Kind::Memory, format!("{name}: {why}")))?;
        let Arrival { at: arrived, leaderless, .. } = self.arrival(name, now);
        let obedience = OBEDIENCE + disturbances.lag;
        for (since, what) in [(self.stopped_since, "must not be probed"), (self.paused_since, "is paused")] {
            // What the seed cannot tell is not known; what was seen of it before counts for a minute (D-27).
            let told = since.zip(disturbances.seed_since).map(|(since, seed)| since.max(seed));
            if let Some(told) = told.filter(|told| arrived > *told + obedience) {
                let late = (arrived - told).as_secs_f64();
                return Err((Kind::Disobedient, format!("{name} is written {late:.1} s after the shoot {what}")));
            }
        }
        let (right, kind, what): (fn(&Judgement) -> bool, _, _) = match way {
            Way::HandsOff => return Ok(()),
            Way::Down | Way::Marked => {
                (|judgement| judgement.may_down, Kind::WrongDown, "scaled down although the nodes renewed")
            }
            Way::Up => (|judgement| judgement.may_up, Kind::WrongUp, "restored during an outage"),
        };
        self.look(disturbances, now);
        if let Some(leaderless) = leaderless {
            self.judge_leaderless(way, &Dependent::of(before), arrived)
                .map_err(|why| (Kind::Leaderless, format!("{leaderless}: {name} {why}")))?;
        }
        // The last complete look that it can rest on was made while the API server last answered.
        let age = disturbances.finding_age();
        let before_it = |sample: &&Sample| sample.at <= arrived;
        let answered =
            self.samples.iter().rev().filter(before_it).find(|sample| sample.answers).map_or(arrived, |sample| sample.at);
        let from = answered.min(arrived) - age;
        let mut window = self.samples.iter().filter(|sample| sample.at >= from).peekable();
        if window.peek().is_none() || window.any(|sample| right(&sample.judgement)) {
            return Ok(());
        }
        let silent: Vec<String> = self.nodes.iter().map(|(name, node)| node_line(name, node, now)).collect();
        Err((kind, format!("{name} is {what}; {}", silent.join(", "))))
    }
}

impl Record {
    /// How the write that is applied now has arrived. Of several that may be it, some of which were refused, it is the first, and the
    /// leader's if one of them is.
    fn arrival(&mut self, name: &str, now: Instant) -> Arrival {
        self.arrivals.retain(|arrival| now - arrival.at < UNDER_WAY);
        let led = self.arrivals.iter().any(|arrival| arrival.name == name && arrival.leaderless.is_none());
        let place = self.arrivals.iter().position(|arrival| arrival.name == name);
        let arrival = place.and_then(|place| self.arrivals.remove(place));
        let arrival = arrival.unwrap_or_else(|| Arrival { at: now, name: name.to_owned(), leaderless: None });
        Arrival { leaderless: arrival.leaderless.filter(|_| !led), ..arrival }
    }

    /// Whether a prober may write so without the lead (D-50): it protects, and restores what carries the marker when the shoot has been
    /// well for long.
    fn judge_leaderless(&self, way: Way, was: &Dependent, arrived: Instant) -> Result<(), &'static str> {
        match way {
            Way::Down | Way::HandsOff => Ok(()),
            Way::Marked => Err("gets its marker back"),
            Way::Up if was.replicas > 0 => Err("is repaired"),
            Way::Up if !was.marker => Err("is restored without carrying the marker"),
            Way::Up if self.was_ill_lately(arrived) => Err("is restored soon after an outage"),
            Way::Up => Ok(()),
        }
    }
}

/// For how long a condition has lasted, once it has for longer than the limit; reported once, then counted again.
fn lasted(since: &mut Option<Instant>, holds: bool, limit: Duration, now: Instant) -> Option<Duration> {
    if !holds {
        *since = None;
        return None;
    }
    let lasted = now - *since.get_or_insert(now);
    (lasted > limit).then(|| {
        *since = Some(now);
        lasted
    })
}

fn node_line(name: &str, node: &super::Node, now: Instant) -> String {
    let silent = now.saturating_duration_since(node.renewed);
    let mut line = format!("{name} silent for {:.1} s", silent.as_secs_f64());
    for (holds, word) in [
        (node.clock.differs(), " (skewed)"),
        (!node.backed, " (no machine)"),
        (!node.counts, " (does not count)"),
        (node.cut && silent > BEAT, " (cut)"),
    ] {
        line.push_str(if holds { word } else { "" });
    }
    line
}

#[cfg(test)]
mod tests;
