//! Findings as Markdown tables, as they are printed and shown on the page of results. Each begins after what stands before it and ends without a line's end.

use std::collections::BTreeMap;

use super::{Report, number};
use crate::race::change::Change;

/// What a table says of each thing that happens to a leader, and the ends of the figures' keys.
const OF_A_CHANGE: [(&str, &str); 9] = [
    ("outages", "trials"),
    ("won", "won"),
    ("not all written yet", "early"),
    ("of these won", "early_won"),
    ("nodes ever Unknown", "unknown"),
    ("next write after that or the verdict, whichever was later: median, s", "reaction_p50"),
    ("worst, s", "reaction_max"),
    ("somebody else led after: median, s", "election_p50"),
    ("writes without the lead", "without_lead"),
];
/// The same of each size that a seed grew to, and the keys' beginnings.
const OF_A_SIZE: [(&str, &str); 8] = [
    ("probes per second", "probes"),
    ("CPU, % of a core", "cpu"),
    ("resident memory, MiB", "resident"),
    ("at most, MiB", "most"),
    ("answers, MB/s", "traffic"),
    ("probe later than its schedule: median, s", "late_p50"),
    ("99th percentile, s", "late_p99"),
    ("worst, s", "late_max"),
];

/// All tables of a result, and what is to be said of each outage that was not won.
pub fn of(result: &Report) -> String {
    let mut text =
        matrix(result, &OF_A_CHANGE, Change::FAULTS.map(|change| (change.words().to_owned(), format!("{}_*", change.key()))));
    text += &matrix(result, &OF_A_SIZE, sizes(result).into_iter().map(|size| (format!("{size} shoots"), format!("*_{size}"))));
    let rows = result.rows.iter().filter(|[what, ..]| !is_in_a_matrix(what)).map(|[what, measured, goal, met]| {
        let goal = match met.as_str() {
            "MISSED" => format!("{goal}, **missed**"),
            "met" => format!("{goal}, met"),
            _ => goal.clone(),
        };
        vec![what.clone(), measured.clone(), goal]
    });
    text += &table(&["", "measured", "goal"], rows);
    let not_won = result.figures.get("not_won").and_then(|list| list.as_array()).into_iter().flatten();
    let not_won: String = not_won.filter_map(|account| Some(format!("\n- {}", account.as_str()?))).collect();
    if !not_won.is_empty() {
        text += &format!("\n\nNot won:\n{not_won}");
    }
    text
}

/// Of all results that have goals: how many were met, and which not.
pub fn summary(results: &BTreeMap<String, Report>) -> String {
    let rows = results.iter().filter_map(|(name, result)| {
        let goals = result.rows.iter().filter(|[.., met]| !met.is_empty()).count();
        let missed = result.missed();
        let met = format!("{} of {goals}", goals - missed.len());
        (goals > 0).then(|| vec![format!("`{name}`"), result.day().to_owned(), met, missed.join("; ")])
    });
    table(&["result", "measured on", "goals met", "missed"], rows).trim_start().to_owned()
}

/// The numbers of shoots that growth was measured with, ascending.
pub fn sizes(result: &Report) -> Vec<usize> {
    let mut sizes: Vec<usize> = result.figures.keys().filter_map(|key| key.strip_prefix("resident_")?.parse().ok()).collect();
    sizes.sort_unstable();
    sizes
}

/// A row for each label of which there are figures; `*` in its pattern stands for the column's part of a figure's key.
fn matrix(result: &Report, columns: &[(&str, &str)], rows: impl IntoIterator<Item = (String, String)>) -> String {
    let head: Vec<&str> = std::iter::once("").chain(columns.iter().map(|(what, _)| *what)).collect();
    let row = |(label, pattern): (String, String)| {
        let values = columns.iter().map(|(_, key)| result.figure(&pattern.replace('*', key)).map(number).unwrap_or_default());
        std::iter::once(label).chain(values).collect::<Vec<_>>()
    };
    let rows: Vec<_> = rows.into_iter().map(row).filter(|row| row[1..].iter().any(|cell| !cell.is_empty())).collect();
    if rows.is_empty() { String::new() } else { table(&head, rows) }
}

fn is_in_a_matrix(what: &str) -> bool {
    what.contains(" shoots: ") || Change::FAULTS.iter().any(|change| what.starts_with(&format!("{}, ", change.words())))
}

fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: String = rows.into_iter().map(|cells| format!("\n| {} |", cells.join(" | "))).collect();
    format!("\n\n| {} |\n|{}{rows}", head.join(" | "), "---|".repeat(head.len()))
}
