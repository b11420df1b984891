//! Findings as Markdown tables, as they are printed and shown on the page of results. Each begins
//! after what stands before it and ends without a line's end.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

use super::BenchmarkReport;

/// All tables of a result, and what is to be said of each outage that was not won.
pub fn of(result: &BenchmarkReport) -> String {
    let not_won = result
        .figures
        .get("not_won")
        .and_then(|list| list.as_array())
        .into_iter()
        .flatten();
    let not_won: String = not_won
        .filter_map(|account| Some(format!("\n- {}", account.as_str()?)))
        .collect();
    let not_won = if not_won.is_empty() {
        not_won
    } else {
        format!("\n\nNot won:\n{not_won}")
    };
    tables(result, |_| true) + &not_won
}

/// The tables of a result with these rows, and those that missed their goal.
pub fn chosen(result: &BenchmarkReport, rows: &[&str]) -> Result<String> {
    for row in rows {
        ensure!(
            result.rows.iter().any(|[what, ..]| what == row),
            "no row {row}"
        );
    }
    let missed = result.missed();
    Ok(tables(result, |[what, ..]| {
        missed.contains(&what.as_str()) || rows.contains(&what.as_str())
    }))
}

fn tables(result: &BenchmarkReport, is_shown: impl Fn(&[String; 4]) -> bool) -> String {
    let matrix = result
        .matrix
        .split_first()
        .map(|(head, rows)| table(head, rows.to_vec()));
    let rows = result
        .rows
        .iter()
        .filter(|row| is_shown(row))
        .map(|[what, measured, goal, met]| {
            let comma = if met.is_empty() { "" } else { ", " };
            vec![
                what.clone(),
                measured.clone(),
                format!("{goal}{comma}{}", met.replace("MISSED", "**missed**")),
            ]
        });
    matrix.unwrap_or_default() + &table(&["", "measured", "goal"], rows)
}

/// What the results were measured on, each machine once.
pub fn machines(results: &BTreeMap<String, BenchmarkReport>) -> String {
    let machines: BTreeSet<&str> = results
        .values()
        .map(|result| result.machine.as_str())
        .collect();
    machines.into_iter().collect::<Vec<_>>().join("; ") + "."
}

fn table(head: &[impl Borrow<str>], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: String = rows
        .into_iter()
        .map(|cells| format!("\n| {} |", cells.join(" | ")))
        .collect();
    format!(
        "\n\n| {} |\n|{}{rows}",
        head.join(" | "),
        "---|".repeat(head.len())
    )
}
