//! The page around the status: head, style, and what is said of the process.

use chrono::{DateTime, Utc};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{ProcessStatus, Status};
use crate::leader_election::RoleName;
use crate::text::time_span;

/// Reload interval of the page, in seconds.
const REFRESH: u32 = 10;

/// Readable on a phone and at night; colours keep a contrast of at least 4.5 : 1.
const STYLE: &str = include_str!("style.css");

pub(super) fn render(process: &ProcessStatus, status: &impl Status) -> Markup {
    let ProcessStatus {
        agent,
        version,
        now,
        uptime_seconds,
        role,
    } = process;
    let role_name = role.role.into_str();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="refresh" content=(REFRESH);
                title { "dependency-watchdog " (agent) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "dependency-watchdog " (agent) }
                    p {
                        strong.tag.(role_name.replace(' ', "-")) { (role_name) }
                        " version " (version) ", up for " (time_span(*uptime_seconds as i64)) ", "
                        (timestamp(*now))
                    }
                    @match (role.role, &role.leader) {
                        (RoleName::Waiting, Some(leader)) => p.note { "Another replica leads: " code { (leader) } ". " (status.without_lead()) },
                        (RoleName::Waiting, None) => p.note { "No replica leads at present. " (status.without_lead()) },
                        (RoleName::DryRun, _) => p.note { "Nothing is written: what would be written is only said and counted." },
                        _ => {}
                    }
                }
                main { (status.body()) }
                footer { p { a href="/statusz.json" { "the same as JSON" } " · " a href="/healthz" { "healthz" } " · " a href="/readyz" { "readyz" } } }
            }
        }
    }
}

/// Format of moments for people.
pub const TIMESTAMP: &str = "%Y-%m-%d %H:%M:%S UTC";

/// A moment, to the second.
pub fn timestamp(at: DateTime<Utc>) -> Markup {
    html! { time datetime=(at.to_rfc3339()) { (at.format(TIMESTAMP)) } }
}

/// A table with a caption; nothing where there is no row.
pub fn table(
    caption: &str,
    columns: &[&str],
    rows: impl IntoIterator<Item = Vec<Markup>>,
) -> Markup {
    let mut rows = rows.into_iter().peekable();
    html! {
        @if rows.peek().is_some() {
            div.scroll {
                table {
                    caption { (caption) }
                    thead { tr { @for column in columns { th scope="col" { (column) } } } }
                    tbody {
                        @for row in rows {
                            // On a phone each cell says itself what it is.
                            tr { @for (column, cell) in columns.iter().zip(&row) { td data-label=(column) { (cell) } } }
                        }
                    }
                }
            }
        }
    }
}

/// A moment some seconds away: `in 5s`, `5s ago`.
pub fn ago(seconds: i64) -> String {
    if seconds < 0 {
        format!("in {}", time_span(-seconds))
    } else {
        format!("{} ago", time_span(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_past_and_what_is_to_come_are_distinguished() {
        assert_eq!([ago(5), ago(-5)], ["5s ago", "in 5s"]);
    }

    #[test]
    fn names_cannot_become_markup() {
        let row = vec![html! { ("<script>") }];
        let shown = table("t", &["\"><script>"], [row]).into_string();
        assert!(!shown.contains("<script>"), "{shown}");
    }

    #[test]
    fn a_table_without_rows_is_not_shown() {
        assert_eq!(table("t", &["a"], []).into_string(), "");
    }
}
