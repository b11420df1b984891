//! Findings as Markdown tables, as they are printed and shown on the page of results. Each begins after what stands before it and ends without a line's end.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use super::Report;

/// All tables of a result, and what is to be said of each outage that was not won.
pub fn of(result: &Report) -> String {
    let matrix = result.matrix.split_first().map(|(head, rows)| table(head, rows.to_vec()));
    let mut text = matrix.unwrap_or_default();
    let rows = result.rows.iter().map(|[what, measured, goal, met]| {
        let comma = if met.is_empty() { "" } else { ", " };
        vec![what.clone(), measured.clone(), format!("{goal}{comma}{}", met.replace("MISSED", "**missed**"))]
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

fn table(head: &[impl Borrow<str>], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: String = rows.into_iter().map(|cells| format!("\n| {} |", cells.join(" | "))).collect();
    format!("\n\n| {} |\n|{}{rows}", head.join(" | "), "---|".repeat(head.len()))
}
