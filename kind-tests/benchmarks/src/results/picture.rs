//! The picture of a race: in how large a share of the outages each thing had happened, by the time
//! since the verdict. A card that brings its own background, light or dark as the reader prefers.

use crate::race::trial::{TimeOf, Trial};
use crate::report::Spread;

pub const TITLE: &str = "From the verdict to the writes that protect";

const STYLE: &str = include_str!("picture.css");
/// From when the verdict could fall to the Go original's write, in 16 outages, in seconds: least,
/// median and most.
const ORIGINAL: [f64; 3] = [4.0, 29.0, 65.0];
/// The powers of ten of seconds on the axis of time, which is logarithmic: from about the shortest
/// that was measured to beyond all.
const POWERS: [i32; 5] = [-2, -1, 0, 1, 2];
/// Between the powers, and the height of all shares, in pixels.
const DECADE: f64 = 165.0;
const HEIGHT: f64 = 270.0;
/// Where the axes meet on the left, and where shares of 1 are.
const LEFT: f64 = 60.0;
const TOP: f64 = 150.0;

/// Draws these outages.
pub fn draw(trials: &[Trial]) -> String {
    let mut parts = vec![text("title", 20.0, 28.0, TITLE)];
    for power in POWERS {
        let time = 10.0_f64.powi(power);
        parts.push(line("grid", &[(time, 0.0), (time, 1.0)].map(place)));
        let (right, down) = place((time, 0.0));
        parts.push(text("middle", right, down + 20.0, &format!("{time} s")));
    }
    for share in [0.0, 0.5, 1.0] {
        let (right, down) = place((100.0, share));
        parts.push(line("grid", &[(LEFT, down), (right, down)]));
        parts.push(text("", 12.0, down, &format!("{:.0} %", share * 100.0)));
    }
    let [least, median, most] = ORIGINAL;
    let original =
        format!("write of the Go original, in 16 outages: {least} to {most} s, median {median} s");
    let (halves, whole) = ((median, 0.5), (median, 1.0));
    let cross = [
        (least, 0.5),
        halves,
        whole,
        (median, 0.0),
        halves,
        (most, 0.5),
    ];
    let mut curves = vec![("original", original, cross.to_vec())];
    let times: [(&str, &str, TimeOf); 3] = [
        ("first", "first write", |trial| trial.first_write),
        (
            "kcm",
            "kube-controller-manager's write, the last that counts",
            |trial| trial.kcm_write,
        ),
        ("end", "the first node could be marked Unknown", |trial| {
            Some(trial.available)
        }),
    ];
    curves.extend(times.map(|(class, legend, of)| {
        let times: Spread = trials.iter().filter_map(of).collect();
        (class, legend.to_owned(), steps(&times))
    }));
    for ((class, legend, points), row) in curves.into_iter().zip(0..) {
        let down = 54.0 + 22.0 * f64::from(row);
        parts.push(line(class, &[(20.0, down - 5.0), (44.0, down - 5.0)]));
        parts.push(text("", 54.0, down, &legend));
        let points: Vec<_> = points.into_iter().map(place).collect();
        parts.push(line(class, &points));
    }
    let what = "share of the outages, by the time after the verdict could first fall";
    parts.push(text("middle", 380.0, TOP + HEIGHT + 44.0, what));
    format!(
        "<svg width=\"760\" height=\"480\" viewBox=\"0 0 760 480\" xmlns=\"http://www.w3.org/2000/svg\">\n\
         <style>\n{STYLE}</style>\n<rect width=\"760\" height=\"480\"/>\n{}</svg>\n",
        parts.concat()
    )
}

/// How large a share of times is not above each.
fn steps(times: &Spread) -> Vec<(f64, f64)> {
    let share = |count: usize| count as f64 / times.values().len() as f64;
    let step =
        |(time, before): (&f64, usize)| [before, before + 1].map(|count| (*time, share(count)));
    times.values().iter().zip(0..).flat_map(step).collect()
}

/// Where a time and a share are; times that are too short for the axis, or negative, are at its
/// beginning.
fn place((time, share): (f64, f64)) -> (f64, f64) {
    let power = time.max(0.01).log10() - f64::from(POWERS[0]);
    (LEFT + DECADE * power, TOP + HEIGHT * (1.0 - share))
}

fn text(class: &str, right: f64, down: f64, words: &str) -> String {
    format!("<text class=\"{class}\" x=\"{right:.1}\" y=\"{down:.1}\">{words}</text>\n")
}

fn line(class: &str, points: &[(f64, f64)]) -> String {
    let points = points.iter();
    let points = points.map(|(right, down)| format!(" {right:.1},{down:.1}"));
    let points = points.collect::<String>();
    format!("<polyline class=\"{class}\" points=\"{points}\"/>\n")
}
