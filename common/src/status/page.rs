//! The page around the status: head, style, and what is said of the process.

use chrono::{DateTime, Utc};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Process, Status};

/// How often the page reloads itself, in seconds.
const REFRESH: u32 = 10;

/// Readable on a phone and at night; colours keep a contrast of at least 4.5 : 1.
const STYLE: &str = include_str!("style.css");

pub(super) fn render(process: &Process, status: &impl Status) -> Markup {
    let Process { agent, version, now, uptime_seconds, standing } = process;
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
                        strong.tag.(standing.role.replace(' ', "-")) { (standing.role) }
                        " version " (version) ", up for " (span(*uptime_seconds as i64)) ", "
                        (timestamp(*now))
                    }
                    @match (standing.role, &standing.leader) {
                        ("waiting", Some(leader)) => p.note { "Another replica leads: " code { (leader) } ". " (status.without_lead()) },
                        ("waiting", None) => p.note { "No replica leads at present. " (status.without_lead()) },
                        ("dry run", _) => p.note { "Nothing is written: what would be written is only said and counted." },
                        _ => {}
                    }
                }
                main { (status.body()) }
                footer { p { a href="/statusz.json" { "the same as JSON" } " · " a href="/healthz" { "healthz" } " · " a href="/readyz" { "readyz" } } }
            }
        }
    }
}

/// A moment, to the second.
pub fn timestamp(at: DateTime<Utc>) -> Markup {
    html! { time datetime=(at.to_rfc3339()) { (at.format("%Y-%m-%d %H:%M:%S UTC")) } }
}

/// A table with a caption; nothing where there is no row.
pub fn table(caption: &str, columns: &[&str], rows: impl IntoIterator<Item = Vec<Markup>>) -> Markup {
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

/// A span of seconds in at most two units, as in `1h 5m`.
pub fn span(seconds: i64) -> String {
    let (sign, seconds) = if seconds < 0 { ("-", seconds.unsigned_abs()) } else { ("", seconds.unsigned_abs()) };
    let text = match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86400, seconds % 86400 / 3600),
    };
    format!("{sign}{text}")
}

/// A moment that is so many seconds away: `in 5s`, `5s ago`.
pub fn ago(seconds: i64) -> String {
    if seconds < 0 { format!("in {}", span(-seconds)) } else { format!("{} ago", span(seconds)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        let shown = [0, 59, 60, 3599, 3600, 86_399, 90_000, -75].map(span);
        assert_eq!(shown, ["0s", "59s", "1m 0s", "59m 59s", "1h 0m", "23h 59m", "1d 1h", "-1m 15s"]);
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
