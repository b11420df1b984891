//! The memory of the oracle: what each replica was shown, by which its writes are judged.

use std::collections::{HashSet, VecDeque};

use super::Seconds;
use super::driver::Life;
use crate::plan::{ByDirection, Direction};
use crate::refusal::Refusal;
use crate::replicas::{DependentState, Marks, Observed};
use crate::shoot::{Input, Shoot};
use crate::verdict::Verdict;

/// An object as a replica knows it, and since when others have had it so.
#[derive(Default)]
pub struct Known {
    state: Option<(String, i32, Marks)>,
    /// The marker, as it was last while the resource exists no more.
    held_down: bool,
    version: u64,
    pub since: Seconds,
}

impl Known {
    pub fn new(object: Option<&Observed>, since: Seconds) -> Self {
        Self {
            state: object.map(|object| (object.uid.clone(), object.replicas, object.marks.clone())),
            held_down: object.is_some_and(|object| object.marks.held_down),
            version: object.map_or(0, version),
            since,
        }
    }
}

fn version(object: &Observed) -> u64 {
    object.resource_version.parse().expect("a number")
}

/// Memory of a replica by which its writes are judged.
#[derive(Default)]
pub struct OracleMemory {
    pub known: Vec<Known>,
    /// The versions that it made.
    pub own: HashSet<u64>,
    pub started: Seconds,
    /// The pause, as shown last; `None` before it was read.
    pub paused: Option<bool>,
    /// Time from which it may write: it runs, sees the seed, is not paused and owns the shoot.
    pub free_since: ByDirection<Seconds>,
    /// Time at which the lead, its config or the shoot's settings last changed for it.
    pub changed_since: Seconds,
    /// Time at which the last complete probe was sent, and its verdict; and the last one that was
    /// answered.
    pub finding: Option<(Seconds, Verdict)>,
    pub answered: Seconds,
    /// The last probe has failed.
    pub fails: bool,
    /// Time of its last write.
    pub wrote: Seconds,
    /// The last direction that a probe asked for, and its beginning.
    pub turned: Option<(Direction, Seconds)>,
    /// Sending of the last probe before a marker was seen to appear: nodes must renew later.
    pub proof_from: Seconds,
    /// Sending of the first of the last probes that all said "up".
    pub up_since: Option<Seconds>,
    pub probes: VecDeque<Seconds>,
    pub failures: VecDeque<Seconds>,
}

impl OracleMemory {
    /// The replica makes a write, and knows of its marker once that is answered.
    pub fn writes(&mut self, place: usize, after: &Observed, t: Seconds) {
        self.own.insert(version(after));
        self.wrote = t;
        if let Some(known) = self.known.get_mut(place) {
            *known = Known {
                held_down: known.held_down,
                ..Known::new(Some(after), known.since)
            };
        }
    }

    /// From now on it may write, as far as others are concerned.
    pub fn is_free(&mut self, t: Seconds) {
        self.free_since = ByDirection { up: t, down: t };
    }

    /// The replica is shown an object, by a watch or by a read.
    pub fn sees(&mut self, place: usize, object: Option<&Observed>, t: Seconds) {
        let known = &mut self.known[place];
        if let Some(object) = object.filter(|object| version(object) >= known.version) {
            if object.marks.held_down && !known.held_down {
                self.proof_from = self.finding.map_or(self.started, |(sent, _)| sent);
            }
            known.held_down = object.marks.held_down;
        }
        if object.is_some_and(|object| version(object) <= known.version) {
            return;
        }
        let new = Known::new(object, t);
        let by_others = known.state.is_some()
            && new.state.is_some()
            && new.state != known.state
            && !self.own.contains(&new.version);
        *known = Known {
            since: if by_others { t } else { known.since },
            version: new.version.max(known.version),
            held_down: known.held_down,
            ..new
        };
    }
}

impl Life {
    pub fn note_finding(&mut self, by: usize) {
        let finding = self.replicas[by].machine.as_ref().and_then(Shoot::finding);
        if let Some(finding) = finding {
            let sent = finding.judged_at.elapsed_since_start().as_seconds_f64();
            let (verdict, tally) = (finding.verdict, finding.tally);
            self.note(format!(
                "{by} finds {verdict:?} {tally:?}, asked at {sent:.3}"
            ));
            let memory = &mut self.replicas[by].memory;
            (memory.finding, memory.fails) = (Some((sent, verdict)), false);
            let up_since = memory.up_since.unwrap_or(sent);
            memory.up_since = verdict.is_up().then_some(up_since);
            if let Some((direction, _)) = verdict.aim()
                && memory.turned.is_none_or(|(before, _)| before != direction)
            {
                memory.turned = Some((direction, self.t));
            }
        }
    }

    /// Takes in what an answer tells a replica.
    pub fn note_answer(&mut self, by: usize, input: &Input) {
        // In a time without an answer nodes may have been silent and come back: surely in one that is
        // twice as long as a lease lasts. The product may count less.
        let unseen = 2.0 * self.plan.threshold();
        let memory = &mut self.replicas[by].memory;
        memory.fails |= matches!(input, Input::Failed(_));
        if let Input::Probed(answer) = input {
            let sent = answer.times.sent.elapsed_since_start().as_seconds_f64();
            memory.up_since.take_if(|_| sent - memory.answered > unseen);
            memory.answered = sent;
        }
        if let Input::Written(id, Err(Refusal::Conflict(DependentState::Present(observed))))
        | Input::Written(id, Ok(observed)) = input
        {
            let place = self.place(by, *id);
            let memory = &mut self.replicas[by].memory;
            memory.sees(place, Some(observed), self.t);
        }
    }
}
