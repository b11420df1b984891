//! The timeline of an outage: who does what without the prober, and with it.
//!
//! Up to the break in its axis it is to scale. Its times are those of the rules, as the demo has them.

use testbed::api::gardener::{CA, KCM, MCM};

use super::svg::Svg;
use crate::scene::{EXPIRED, GRACE};

/// The picture's name.
pub const FILE: &str = "outage.svg";
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 492.0;
const MARGIN: f64 = 16.0;
/// Where the bars begin and end.
const BEGIN: f64 = 200.0;
const END: f64 = 944.0;
/// Pixels per second, and how many seconds before the last renewals the bars begin.
const SECOND: f64 = 8.0;
const BEFORE: f64 = 12.0;
/// Seconds between two renewals of a node.
const BEAT: f64 = 10.0;
/// Seconds until the second level of a scale-down: about as long as pods of the first one take to be gone.
const SECOND_LEVEL: f64 = 2.0;
/// Right of the break, not to scale: machines are replaced, the network is back, and each controller is.
const BREAK: f64 = 706.0;
const REPLACED: f64 = 722.0;
const BACK: f64 = 814.0;
const KCM_BACK: f64 = BACK + 16.0;
const MCM_BACK: f64 = BACK + 52.0;
const CA_BACK: f64 = BACK + 70.0;
/// Where things are from top to bottom.
const AXIS: f64 = 92.0;
const RENEWALS: f64 = 114.0;
const WITHOUT: f64 = 172.0;
const WITH: f64 = 310.0;
const BOTTOM: f64 = 416.0;
const BAR: f64 = 20.0;
const ROW: f64 = 24.0;

/// Where a bar ends, its class, and what is written on it; it begins where the one before ends.
type Bar = (f64, &'static str, &'static str);

pub fn draw() -> String {
    let mut svg = Svg::default();
    let title = "The network between a cluster's nodes and its API server fails";
    svg.text("title strong", MARGIN, 32.0, title);
    let (expired, given_up) = (x(EXPIRED), x(GRACE));
    svg.rectangle("race", expired, AXIS, given_up - expired, BOTTOM - AXIS);
    svg.text("centred warn", (expired + given_up) / 2.0, WITH - 6.0, &format!("{:.0} s to act", GRACE - EXPIRED));
    axis(&mut svg);
    renewals(&mut svg);
    lane(
        &mut svg,
        WITHOUT,
        "Without dependency-watchdog",
        [
            (KCM, &[(given_up, "runs", "runs"), (END, "warn", "marks every node Unknown")]),
            (MCM, &[(REPLACED, "runs", "runs"), (END, "bad", "replaces healthy machines")]),
            (CA, &[(END, "runs", "runs")]),
            ("nodes", &[(given_up, "good", "Ready"), (REPLACED, "warn", "Unknown"), (END, "bad", "deleted, and replaced")]),
        ],
    );
    lane(
        &mut svg,
        WITH,
        "With dependency-watchdog",
        [
            (
                KCM,
                &[
                    (x(EXPIRED + SECOND_LEVEL), "runs", "runs"),
                    (KCM_BACK, "held", "at 0: nobody marks nodes Unknown"),
                    (END, "runs", "runs"),
                ],
            ),
            (MCM, &[(expired, "runs", "runs"), (MCM_BACK, "held", "at 0: nobody deletes machines"), (END, "runs", "runs")]),
            (CA, &[(expired, "runs", "runs"), (CA_BACK, "held", "at 0: nobody removes machines"), (END, "runs", "runs")]),
            ("nodes", &[(END, "good", "Ready: the same machines and the same pods all the time")]),
        ],
    );
    let caption = [
        format!(
            "Seconds since the last renewals, with a grace (nodeMonitorGracePeriod) of {GRACE:.0} s. A lease is expired after {} of it: \
             {EXPIRED:.0} s.",
            EXPIRED / GRACE
        ),
        "The prober acts when 60 % of the leases are expired (rules 46 to 48), and keeps the replicas to return to in annotations.".into(),
        "Right of the break: not to scale.".into(),
    ];
    for (number, line) in caption.iter().enumerate() {
        svg.text("soft", MARGIN, BOTTOM + 24.0 + 18.0 * number as f64, line);
    }
    svg.finish(title, WIDTH, HEIGHT)
}

/// The place of so many seconds after the last renewals.
fn x(seconds: f64) -> f64 {
    BEGIN + (BEFORE + seconds) * SECOND
}

fn axis(svg: &mut Svg) {
    svg.line("line", (BEGIN, AXIS), (BREAK - 3.0, AXIS));
    svg.line("line", (BREAK + 3.0, AXIS), (END, AXIS));
    for at in [BREAK - 3.0, BREAK + 3.0] {
        svg.line("line", (at - 3.0, AXIS + 6.0), (at + 3.0, AXIS - 6.0));
    }
    let moments = [
        (x(0.0), "centred", "0 s".to_owned(), "last renewals"),
        (x(EXPIRED), "left-of", format!("{EXPIRED:.0} s"), "leases expired"),
        (x(GRACE), "", format!("{GRACE:.0} s"), "grace over"),
        (REPLACED, "", "later".to_owned(), ""),
        (BACK, "", "network is back".to_owned(), ""),
    ];
    for (at, class, when, what) in moments {
        svg.text(&format!("strong {class}"), at, AXIS - 30.0, &when);
        svg.text(&format!("soft {class}"), at, AXIS - 14.0, what);
        svg.line("moment", (at, AXIS), (at, BOTTOM));
    }
}

/// Those that arrive, and those that do not.
fn renewals(svg: &mut Svg) {
    svg.text("left-of", BEGIN - 8.0, RENEWALS + 4.0, "leases renewed");
    for at in [x(-BEAT), x(0.0), BACK + 10.0, BACK + 50.0, BACK + 90.0] {
        svg.dot("good", at, RENEWALS);
    }
    let lost = [1.0, 2.0, 3.0, 4.0].map(|beats| x(beats * BEAT));
    for at in lost.into_iter().chain([x(GRACE + BEAT), REPLACED + 26.0, REPLACED + 66.0]) {
        svg.line("lost", (at - 4.0, RENEWALS - 4.0), (at + 4.0, RENEWALS + 4.0));
        svg.line("lost", (at - 4.0, RENEWALS + 4.0), (at + 4.0, RENEWALS - 4.0));
    }
    svg.text("soft", x(0.0) + 8.0, RENEWALS + 24.0, "none arrives; nodes and pods run on");
}

fn lane(svg: &mut Svg, top: f64, heading: &str, rows: [(&str, &[Bar]); 4]) {
    svg.text("heading strong", MARGIN, top - 6.0, heading);
    for (number, (name, bars)) in rows.into_iter().enumerate() {
        let y = top + 10.0 + ROW * number as f64;
        svg.text("left-of", BEGIN - 8.0, y + 14.0, name);
        // Covers the lines of the moments, which would cross the text.
        svg.rectangle("paper", BEGIN, y, END - BEGIN, BAR);
        let mut begin = BEGIN;
        for (end, class, text) in bars {
            svg.rectangle(class, begin, y, end - begin, BAR);
            svg.text(class, begin + 8.0, y + 14.0, text);
            begin = *end;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_timeline_of_the_docs_is_the_one_that_is_drawn() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures").join(FILE);
        let kept = std::fs::read_to_string(file).expect("the picture");
        assert!(kept == draw(), "docs/pictures/{FILE} is another one: make pictures");
    }
}
