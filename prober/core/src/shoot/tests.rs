//! The machine of one shoot, driven through hours in no time. Times are seconds since what a test is
//! about: the verdict in an outage, else the start, or [`Timeline::mark`].

mod attacked;
mod begun_restore;
mod blips;
mod evidence;
mod freshness;
mod known;
mod old_evidence;
mod owner;
mod permits;
mod probing;
mod proof;
mod recovery;
mod silence;
mod standby;
mod start;
mod state;
mod suspended;
mod taking_turns;
mod timeline;
mod unscalable;
mod vouched;

use std::time::Duration;

use chrono::TimeDelta;

use self::timeline::{Api, DEADLINE, FAILS, Timeline, healthy, longest_gap, outage};
use super::*;
use crate::refusal::Refusal;
use crate::replicas::{Marks, Observed};
use crate::tests::scene::{OwnedEnvironment, PATIENCE, dependent, running};

/// The two dependents: machine-controller-manager goes down first, kube-controller-manager comes up
/// first.
const MCM: DependentId = DependentId(0);
const KCM: DependentId = DependentId(1);
const ALL_DOWN: [(DependentId, i32); 2] = [(MCM, 0), (KCM, 0)];
const ALL_UP: [(DependentId, i32); 2] = [(KCM, 1), (MCM, 1)];
const NEVER: [f64; 0] = [];

fn present(observed: Observed) -> DependentState {
    DependentState::Present(Arc::new(observed))
}

/// A resource that is held down, and whose pods are gone.
fn held(memory: &str) -> Observed {
    let marks = Marks {
        replicas: Some(memory.into()),
        held_down: true,
        ignored: false,
    };
    Observed {
        ready: 0,
        marks,
        ..running(0)
    }
}

/// The same while its last pod ends.
fn ending() -> Observed {
    Observed {
        ready: 1,
        ..held("1")
    }
}

/// Others scale it up and leave its marker.
fn raise(observed: &mut Observed) {
    observed.replicas = 1;
}

/// Others scale it up and remove its marker.
fn undo(observed: &mut Observed) {
    *observed = running(1);
}

/// The leader takes it down.
fn take_down(observed: &mut Observed) {
    *observed = held("1");
}

fn ignore(observed: &mut Observed) {
    observed.marks.ignored = true;
}
