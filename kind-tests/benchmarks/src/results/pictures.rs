//! The pictures of the results: which there is for a result, and what is drawn.

use std::ops::Range;

use anyhow::{Context, Result};

use super::chart::{
    Axis, BLUE, ChartMark, GREEN, INK, Layer, OCHRE, PURPLE, Panel, Picture, RED, Shade, draw,
    in_seconds, plain,
};
use crate::race::leader_fault::LeaderFault;
use crate::race::summary::CONTROL;
use crate::race::trial::{TimeOf, Trial};
use crate::report::{BenchmarkReport, Spread};

/// From when the verdict could fall to the Go original's write, in 16 outages: least, median, most,
/// in seconds.
const ORIGINAL_RACE: [f64; 3] = [4.0, 29.0, 65.0];
/// The same in the melt-down of 300 shoots, from its first write to its last.
const ORIGINAL_MELTDOWN: [f64; 2] = [29.0, 74.0];

pub fn of(result: &BenchmarkReport) -> Result<Option<Picture>> {
    match result.benchmark.as_str() {
        "growth" => growth(result).map(Some),
        "meltdown" => meltdown(result).map(Some),
        _ if result.figures.contains_key("raced") && result.benchmark != CONTROL => {
            let trials = Trial::all_of(result)?;
            if trials.iter().any(|trial| trial.fault.is_some()) {
                moments(&trials).map(Some)
            } else {
                race(&trials).map(Some)
            }
        }
        _ => Ok(None),
    }
}

/// In how large a share of the outages each thing had happened, by the time since the verdict.
fn race(trials: &[Trial]) -> Result<Picture> {
    let [least, median, most] = ORIGINAL_RACE;
    let original = format!(
        "write of the Go original, in 16 outages: {least} to {most} s, median {median} s (line)"
    );
    let [least, median, most] = ORIGINAL_RACE.map(place);
    let mut layers = vec![
        Layer {
            mark: ChartMark::Band,
            color: OCHRE,
            points: vec![(least, 0.0), (most, 100.0)],
            legend: Some(original),
        },
        Layer {
            mark: ChartMark::Line,
            color: OCHRE,
            points: vec![(median, 0.0), (median, 100.0)],
            legend: None,
        },
    ];
    let curves: [(Shade, &str, TimeOf); 3] = [
        (BLUE, "first write", |trial| trial.first_write),
        (
            GREEN,
            "kube-controller-manager's write, the last that counts",
            |trial| trial.kcm_write,
        ),
        (RED, "the first node could be marked Unknown", |trial| {
            Some(trial.available)
        }),
    ];
    layers.extend(curves.map(|(color, what, of)| {
        let points = steps(&trials.iter().filter_map(of).collect());
        Layer {
            mark: ChartMark::Line,
            color,
            points,
            legend: Some(what.to_owned()),
        }
    }));
    let y = Axis {
        what: "share of the outages",
        span: 0.0..100.0,
        labels: 6,
        format: |share| format!("{} %", plain(share)),
    };
    let title = format!(
        "From the verdict to the writes that protect: {} outages",
        trials.len()
    );
    draw(
        &title,
        &[Panel {
            x: times(),
            y,
            layers,
        }],
    )
}

/// How large a share of times is not above each, in percent.
fn steps(times: &Spread) -> Vec<(f64, f64)> {
    let share = |count: usize| count as f64 / times.values().len() as f64 * 100.0;
    let step = |(index, time): (usize, &f64)| {
        [
            (place(*time), share(index)),
            (place(*time), share(index + 1)),
        ]
    };
    times.values().iter().enumerate().flat_map(step).collect()
}

/// A logarithmic axis from 0.01 s, which is about the shortest time that was measured, to 100 s,
/// beyond all that is drawn.
fn times() -> Axis<'static> {
    let format = |place: &f64| in_seconds(&10.0_f64.powf(*place));
    Axis {
        what: "time after the verdict could first fall, logarithmic",
        span: -2.0..2.0,
        labels: 5,
        format,
    }
}

/// Where a time is on that axis; those that are too short for it, or negative, are at its
/// beginning.
fn place(seconds: f64) -> f64 {
    seconds.max(0.01).log10()
}

/// What was left over in each outage, by the moment in it at which something happened to the
/// leader.
fn moments(trials: &[Trial]) -> Result<Picture> {
    let mut layers = Vec::new();
    for (change, color) in LeaderFault::FAULTS
        .into_iter()
        .zip([BLUE, GREEN, PURPLE, OCHRE, INK, BLUE])
    {
        let mut hit: Vec<_> = trials
            .iter()
            .filter_map(|trial| trial.fault.as_ref().zip(trial.left))
            .collect();
        hit.retain(|(fault, _)| fault.change == change);
        let legend =
            (!hit.is_empty()).then(|| format!("{}: {} outages", change.words(), hit.len()));
        for (mark, is_written, legend) in [
            (ChartMark::Dot, false, legend),
            (ChartMark::Ring, true, None),
        ] {
            let those = hit
                .iter()
                .filter(|(fault, _)| fault.written_before == is_written);
            layers.push(Layer {
                mark,
                color,
                points: those
                    .map(|(fault, left)| (fault.after_outage, *left))
                    .collect(),
                legend,
            });
        }
    }
    let axis = |what, of: fn(&(f64, f64)) -> f64, step| {
        let values = layers.iter().flat_map(|layer| &layer.points).map(of);
        Axis {
            what,
            span: span(values, step),
            labels: 11,
            format: in_seconds,
        }
    };
    let x = axis(
        "from the beginning of the outage to what happened to the leader",
        |point| point.0,
        5.0,
    );
    let y = axis("time left over", |point| point.1, 2.0);
    let line = vec![(x.span.start, 0.0), (x.span.end, 0.0)];
    let lost = "below this line kube-controller-manager ended after the first node could be marked Unknown";
    let ring = "a ring: all was written by then".to_owned();
    layers.push(Layer {
        mark: ChartMark::Ring,
        color: INK,
        points: Vec::new(),
        legend: Some(ring),
    });
    layers.push(Layer {
        mark: ChartMark::Line,
        color: RED,
        points: line,
        legend: Some(lost.to_owned()),
    });
    let title = "Time left over when kube-controller-manager had ended, by the moment of the fault";
    draw(title, &[Panel { x, y, layers }])
}

/// From 0 or below to above 0, so that all values are in it and it ends at multiples of a step.
fn span(values: impl Iterator<Item = f64>, step: f64) -> Range<f64> {
    let (low, high) = values.fold((0.0_f64, step), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    (low / step).floor() * step..(high / step).ceil() * step
}

/// The numbers of shoots that growth was measured with, ascending.
fn sizes(result: &BenchmarkReport) -> Vec<usize> {
    let mut sizes: Vec<usize> = result
        .figures
        .keys()
        .filter_map(|key| key.strip_prefix("resident_")?.parse().ok())
        .collect();
    sizes.sort_unstable();
    sizes
}

/// Memory and CPU by the number of shoots.
fn growth(result: &BenchmarkReport) -> Result<Picture> {
    let panels = [
        (BLUE, "resident memory, MiB", "resident"),
        (GREEN, "CPU, % of a core", "cpu"),
    ]
    .map(|(color, what, key)| {
        let point = |size: usize| Some((size as f64, result.figure(&format!("{key}_{size}"))?));
        let points: Vec<(f64, f64)> = sizes(result).into_iter().filter_map(point).collect();
        let (right, top) = points.iter().fold((0.0_f64, 0.0_f64), |(x, y), point| {
            (x.max(point.0), y.max(point.1))
        });
        Panel {
            x: Axis {
                what: "shoots",
                span: 0.0..right * 1.05,
                labels: 5,
                format: plain,
            },
            y: Axis {
                what,
                span: 0.0..top * 1.1,
                labels: 7,
                format: plain,
            },
            layers: [ChartMark::Line, ChartMark::Dot]
                .map(|mark| Layer {
                    mark,
                    color,
                    points: points.clone(),
                    legend: None,
                })
                .into(),
        }
    });
    draw(
        "What the prober takes, by the number of shoots of 100 nodes",
        &panels,
    )
}

/// From when to when the writes of a melt-down were made.
fn meltdown(result: &BenchmarkReport) -> Result<Picture> {
    let figure = |key: &str| result.figure(key).with_context(|| format!("no {key}"));
    let spread = |key: &str| {
        ["min", "p50", "max"]
            .iter()
            .map(|end| figure(&format!("{key}_{end}")))
            .collect::<Result<Vec<_>>>()
    };
    let [begin, end] = ORIGINAL_MELTDOWN;
    let original =
        format!("the Go original: its first write after {begin} s, its last after {end} s");
    let bars = [
        (
            BLUE,
            "first level at 0, after the verdict of its shoot",
            spread("first_level")?,
        ),
        (
            GREEN,
            "kube-controller-manager at 0, after the verdict of its shoot",
            spread("kcm")?,
        ),
        (
            INK,
            "for comparison: all of these writes by a client that has nothing to wait for",
            vec![0.0, figure("bare")?],
        ),
        (OCHRE, &original, vec![begin, end]),
    ];
    let y = Axis {
        what: "",
        span: 0.0..bars.len() as f64,
        labels: 0,
        format: plain,
    };
    let mut layers = Vec::new();
    for (row, (color, what, moments)) in (1..).zip(bars) {
        let (bottom, top) = (
            y.span.end - f64::from(row) + 0.2,
            y.span.end - f64::from(row) + 0.8,
        );
        let places: Vec<f64> = moments.into_iter().map(place).collect();
        let [from, .., to] = places[..] else { continue };
        let points = vec![(from, bottom), (to, top)];
        layers.push(Layer {
            mark: ChartMark::Band,
            color,
            points,
            legend: Some(what.to_owned()),
        });
        let line = |place| Layer {
            mark: ChartMark::Line,
            color,
            points: vec![(place, bottom), (place, top)],
            legend: None,
        };
        layers.extend(places.into_iter().map(line));
    }
    let title = "All shoots of a seed fail at once: the first write, the median and the last";
    draw(
        title,
        &[Panel {
            x: times(),
            y,
            layers,
        }],
    )
}
