//! What the rules of the core are worth, in figures: simulations print them, and `make rent` compares
//! them with each rule switched off.

use super::life::Seconds;

/// Prints how often something happened in a row.
pub fn count(row: &str, what: &str, count: usize) {
    println!("FIGURE {row}: {what}|{count}");
}

/// Prints a measure.
pub fn measure(row: &str, what: &str, value: f64) {
    println!("FIGURE {row}: {what}|{value:.2}");
}

/// Prints the middle one of these, and the one that 5 % exceed.
pub fn spread(row: &str, what: &str, mut list: Vec<Seconds>) {
    list.sort_by(f64::total_cmp);
    if !list.is_empty() {
        measure(row, &format!("{what} s, p50"), list[list.len() / 2]);
        measure(row, &format!("{what} s, p95"), list[list.len() * 95 / 100]);
    }
}
