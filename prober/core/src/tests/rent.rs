//! What the rules of the core are worth, in figures: scenarios that an operator can meet, and
//! exotic ones (`X`). Nothing is asserted; `make rent` compares them with each rule switched off.
//!
//! ```text
//! cargo test --release --package prober-core --lib -- tests::rent --ignored --nocapture
//! ```

mod duels;
mod healthy;
mod outages;

use super::simulation::{Seconds, SimulatedWorld};

/// Lives of each size of shoot in a row.
const LIVES: u64 = 40;

/// Clocks that NTP keeps, and a shoot that has been in operation for long.
fn ntp() -> SimulatedWorld {
    SimulatedWorld {
        skew: |draw| draw * 0.1 - 0.05,
        latency: 0.02,
        in_operation: true,
        ..SimulatedWorld::default()
    }
}

/// Prints how often something happened in a row.
fn count(row: &str, what: &str, count: usize) {
    println!("FIGURE {row}: {what}|{count}");
}

/// Prints a measure.
fn measure(row: &str, what: &str, value: f64) {
    println!("FIGURE {row}: {what}|{value:.2}");
}

/// Prints the middle one of these, and the one that 5 % exceed.
fn spread(row: &str, what: &str, mut list: Vec<Seconds>) {
    list.sort_by(f64::total_cmp);
    if !list.is_empty() {
        measure(row, &format!("{what} s, p50"), list[list.len() / 2]);
        measure(row, &format!("{what} s, p95"), list[list.len() * 95 / 100]);
    }
}
