//! The machine of one shoot, driven through hours in no time. Times are seconds since what a test is
//! about: the verdict in an outage, else the start, or the word `mark`.

mod attacked;
mod blips;
mod evidence;
mod freshness;
mod holds;
mod levels;
mod owner;
mod permits;
mod proof;
mod recovery;
mod restore;
mod standby;
mod start;
mod story;
mod suspended;
mod timeline;
mod unscalable;

use std::time::Duration;

use self::story::{begin, tell};
use super::*;
use crate::config::Config;
use crate::lease::LeaseList;
use crate::moment::RequestTimes;
use crate::refusal::Refusal;
use crate::replicas::{Marks, Observed};
use crate::tests::scene::{change_settings, dependent, number, running, table};
use chrono::TimeDelta;

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
