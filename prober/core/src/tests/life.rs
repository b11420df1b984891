//! Lives of a shoot: two replicas of the machine over simulated hours, in which every answer takes
//! its time, clocks are off, nodes come and go, and an oracle that knows the truth judges each
//! write. Rows of words say what goes wrong in a life.

mod driver;
mod memory;
mod mishaps;
mod nodes;
mod oracle;
mod plan;
mod seed;
mod views;
mod words;

use std::str::FromStr;
use std::thread;

use chrono::TimeDelta;

pub use self::driver::Life;
pub use self::plan::{FOR_GOOD, Leadership, Plan, Silences};
pub use self::words::name;
use crate::moment::Moment;

/// Seconds of true time; the prober's own monotonic clock is true here.
pub type Seconds = f64;

/// As exact as the machine's own moments, and never before `t`.
fn at(t: Seconds) -> Moment {
    Moment::START + TimeDelta::nanoseconds((t * 1e9).ceil() as i64)
}

/// The value of a variable of the environment.
pub fn variable<T: FromStr>(name: &str) -> Option<T> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().ok().expect(name))
}

/// Lives of each row: so many, in the long form more, or as many as `LIVES` says.
pub fn lives(short: u64, long: u64) -> u64 {
    let form: Option<String> = variable("MODEL");
    let is_long = form.is_some_and(|form| form == "long");
    variable("LIVES").unwrap_or(if is_long { long } else { short })
}

/// What comes of each, all side by side.
pub fn each<T: Sync, R: Send>(of: &[T], live: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let live = &live;
    thread::scope(|scope| {
        let threads: Vec<_> = of
            .iter()
            .map(|one| scope.spawn(move || live(one)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|done| done.expect("a test failed")).collect()
    })
}
