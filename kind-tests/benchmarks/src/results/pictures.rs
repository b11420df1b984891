//! The pictures of the results: which there is for a result, and what is drawn.

use std::ops::Range;

use anyhow::{Context, Result};

use super::chart::{
    Axis, BLUE, GREEN, INK, Layer, Mark, OCHRE, PURPLE, Panel, Picture, RED, Times, draw, in_seconds, percent, plain,
};
use crate::race::change::Change;
use crate::race::summary::CONTROL;
use crate::race::trial::Trial;
use crate::report::tables::sizes;
use crate::report::{Report, Spread};

/// From when the verdict could fall to the Go original's write, in 16 outages: least, median, most, in seconds.
const ORIGINAL_RACE: [f64; 3] = [4.0, 29.0, 65.0];
/// The same in the melt-down of 300 shoots, from its first write to its last.
const ORIGINAL_MELTDOWN: [f64; 2] = [29.0, 74.0];
/// What times are counted from.
const FROM: &str = "time after the verdict could first fall, logarithmic";

pub fn of(result: &Report) -> Result<Option<Picture>> {
    match result.benchmark.as_str() {
        "growth" => growth(result).map(Some),
        "meltdown" => meltdown(result).map(Some),
        _ if result.figures.contains_key("raced") && result.benchmark != CONTROL => {
            let trials = Trial::all_of(result)?;
            if trials.iter().any(|trial| trial.fault.is_some()) { moments(&trials).map(Some) } else { race(&trials).map(Some) }
        }
        _ => Ok(None),
    }
}

/// In how large a share of the outages each thing had happened, by the time since the verdict.
fn race(trials: &[Trial]) -> Result<Picture> {
    let values = |of: fn(&Trial) -> Option<f64>| trials.iter().filter_map(of).collect::<Spread>();
    let curves = [
        (BLUE, "first write", values(|trial| trial.first_write)),
        (GREEN, "kube-controller-manager's write, the last that counts", values(|trial| trial.kcm_write)),
        (RED, "the first node could be marked Unknown", values(|trial| Some(trial.available))),
    ];
    let [least, median, most] = ORIGINAL_RACE;
    let mut legend: Vec<_> = curves.iter().map(|(color, what, _)| (Mark::Line, *color, (*what).to_owned())).collect();
    let original = format!("write of the Go original, in 16 outages: {least} to {most} s, median {median} s (line)");
    legend.push((Mark::Band, OCHRE, original));
    let times = Times::of(curves.iter().flat_map(|(_, _, values)| values.values().iter().copied()));
    let [least, median, most] = ORIGINAL_RACE.map(|seconds| times.at(seconds));
    let mut layers = vec![
        Layer::Marks(Mark::Band, OCHRE, vec![(least, 0.0), (most, 100.0)]),
        Layer::Marks(Mark::Line, OCHRE, vec![(median, 0.0), (median, 100.0)]),
    ];
    layers.extend(curves.iter().map(|(color, _, values)| Layer::Marks(Mark::Line, *color, steps(values.values(), times))));
    let y = Axis { what: "share of the outages", span: 0.0..100.0, labels: 6, format: percent };
    let title = format!("From the verdict to the writes that protect: {} outages", trials.len());
    draw(&title, &legend, &[Panel { x: times.axis(FROM), y, layers }])
}

/// How large a share of sorted values is not above each, in percent.
fn steps(values: &[f64], times: Times) -> Vec<(f64, f64)> {
    let share = |count: usize| count as f64 / values.len() as f64 * 100.0;
    let step = |(index, value): (usize, &f64)| [(times.at(*value), share(index)), (times.at(*value), share(index + 1))];
    values.iter().enumerate().flat_map(step).collect()
}

/// What was left over in each outage, by the moment in it at which something happened to the leader.
fn moments(trials: &[Trial]) -> Result<Picture> {
    let (mut legend, mut dots) = (Vec::new(), Vec::new());
    for (change, color) in Change::FAULTS.into_iter().zip([BLUE, GREEN, PURPLE, OCHRE, INK, BLUE]) {
        let before = dots.len();
        dots.extend(trials.iter().filter_map(|trial| {
            let fault = trial.fault_by(change)?;
            let mark = if fault.written_before { Mark::Ring } else { Mark::Dot };
            Some((mark, color, (fault.after_outage, trial.left?)))
        }));
        if dots.len() > before {
            legend.push((Mark::Dot, color, format!("{}: {} outages", change.words(), dots.len() - before)));
        }
    }
    let lost = "below this line kube-controller-manager ended after the first node could be marked Unknown";
    legend.push((Mark::Ring, INK, "a ring: all was written by then".to_owned()));
    legend.push((Mark::Line, RED, lost.to_owned()));
    let x = Axis {
        what: "from the beginning of the outage to what happened to the leader",
        span: span(dots.iter().map(|(_, _, dot)| dot.0), 5.0),
        labels: 11,
        format: in_seconds,
    };
    let y =
        Axis { what: "time left over", span: span(dots.iter().map(|(_, _, dot)| dot.1), 2.0), labels: 11, format: in_seconds };
    let mut layers = vec![Layer::Marks(Mark::Line, RED, vec![(x.span.start, 0.0), (x.span.end, 0.0)])];
    layers.extend(dots.into_iter().map(|(mark, color, dot)| Layer::Marks(mark, color, vec![dot])));
    let title = "Time left over when kube-controller-manager had ended, by the moment of the fault";
    draw(title, &legend, &[Panel { x, y, layers }])
}

/// From 0 or below to above 0, so that all values are in it and it ends at multiples of a step.
fn span(values: impl Iterator<Item = f64>, step: f64) -> Range<f64> {
    let (low, high) = values.fold((0.0_f64, step), |(low, high), value| (low.min(value), high.max(value)));
    (low / step).floor() * step..(high / step).ceil() * step
}

/// Memory and CPU by the number of shoots.
fn growth(result: &Report) -> Result<Picture> {
    let panels = [(BLUE, "resident memory, MiB", "resident"), (GREEN, "CPU, % of a core", "cpu")].map(|(color, what, key)| {
        let point = |size: usize| Some((size as f64, result.figure(&format!("{key}_{size}"))?));
        let points: Vec<(f64, f64)> = sizes(result).into_iter().filter_map(point).collect();
        let (right, top) = points.iter().fold((0.0_f64, 0.0_f64), |(x, y), point| (x.max(point.0), y.max(point.1)));
        Panel {
            x: Axis { what: "shoots", span: 0.0..right * 1.05, labels: 5, format: plain },
            y: Axis { what, span: 0.0..top * 1.1, labels: 7, format: plain },
            layers: [Mark::Line, Mark::Dot].map(|mark| Layer::Marks(mark, color, points.clone())).into(),
        }
    });
    draw("What the prober takes, by the number of shoots of 100 nodes", &[], &panels)
}

/// From when to when the writes of a melt-down were made.
fn meltdown(result: &Report) -> Result<Picture> {
    let figure = |key: &str| result.figure(key).with_context(|| format!("no {key}"));
    let spread = |key: &str| ["min", "p50", "max"].iter().map(|end| figure(&format!("{key}_{end}"))).collect::<Result<Vec<_>>>();
    let (first_level, last_level) = (spread("first_level")?, spread("kcm")?);
    let times = Times::of(first_level.iter().chain(&last_level).copied());
    let [begin, end] = ORIGINAL_MELTDOWN;
    let original = format!("the Go original: its first write after {begin} s, its last after {end} s");
    let bare = "for comparison: all of these writes by a client that has nothing to wait for".to_owned();
    let bars = [
        (BLUE, "first level at 0, after the verdict of its shoot".to_owned(), first_level),
        (GREEN, "kube-controller-manager at 0, after the verdict of its shoot".to_owned(), last_level),
        (INK, bare, vec![0.0, figure("bare")?]),
        (OCHRE, original, vec![begin, end]),
    ];
    let y = Axis { what: "", span: 0.0..bars.len() as f64, labels: 0, format: plain };
    let mut layers = Vec::new();
    for (row, (color, what, moments)) in bars.into_iter().rev().enumerate() {
        let (bottom, top) = (row as f64 + 0.2, row as f64 + 0.5);
        let places: Vec<f64> = moments.into_iter().map(|seconds| times.at(seconds)).collect();
        if let [from, .., to] = places[..] {
            layers.push(Layer::Marks(Mark::Band, color, vec![(from, bottom), (to, top)]));
        }
        layers.extend(places.iter().map(|&place| Layer::Marks(Mark::Line, color, vec![(place, bottom), (place, top)])));
        layers.push(Layer::Text(what, (times.at(0.0) + 0.04, top + 0.25)));
    }
    draw(
        "All shoots of a seed fail at once: the first write, the median and the last",
        &[],
        &[Panel { x: times.axis(FROM), y, layers }],
    )
}
