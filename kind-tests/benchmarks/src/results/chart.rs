//! What all pictures share: a card that brings its own background, light or dark as the reader prefers, with a title and a legend.

use std::ops::Range;

use anyhow::Result;
use plotters::backend::SVGBackend;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::style::{Color, IntoFont, RGBColor, TRANSPARENT, TextStyle};

const CARD: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);
pub const INK: RGBColor = RGBColor(0x1F, 0x23, 0x28);
const GRID: RGBColor = RGBColor(0xD1, 0xD9, 0xE0);
pub const BLUE: RGBColor = RGBColor(0x09, 0x69, 0xDA);
pub const GREEN: RGBColor = RGBColor(0x1A, 0x7F, 0x37);
pub const RED: RGBColor = RGBColor(0xCF, 0x22, 0x2E);
pub const OCHRE: RGBColor = RGBColor(0x9A, 0x67, 0x00);
pub const PURPLE: RGBColor = RGBColor(0x82, 0x50, 0xDF);

/// What takes the place of each colour for readers who prefer dark pages.
const DARK: [(RGBColor, &str); 8] = [
    (CARD, "#0D1117"),
    (INK, "#F0F6FC"),
    (GRID, "#3D444D"),
    (BLUE, "#4493F8"),
    (GREEN, "#3FB950"),
    (RED, "#F85149"),
    (OCHRE, "#D29922"),
    (PURPLE, "#AB7DF8"),
];

const WIDTH: u32 = 760;
/// Of what is below title and legend.
const HEIGHT: u32 = 340;
const TITLE: i32 = 44;
const LEGEND: i32 = 22;
/// How opaque a band is.
const BAND: f64 = 0.25;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

pub struct Picture {
    pub title: String,
    pub svg: String,
}

/// How a thing is drawn, in a panel and in the legend.
#[derive(Clone, Copy)]
pub enum Mark {
    Line,
    Dot,
    Ring,
    /// From the first point to the last.
    Band,
}

/// Points that are drawn alike, or a text at one.
pub enum Layer {
    Marks(Mark, RGBColor, Vec<(f64, f64)>),
    Text(String, (f64, f64)),
}

/// One of the charts of a picture, which stand side by side. Layers are drawn in order.
pub struct Panel<'a> {
    pub x: Axis<'a>,
    pub y: Axis<'a>,
    pub layers: Vec<Layer>,
}

/// An axis: what it measures, from where to where, how many labels it has at most, and how they are written.
pub struct Axis<'a> {
    pub what: &'a str,
    pub span: Range<f64>,
    pub labels: usize,
    pub format: fn(&f64) -> String,
}

/// A picture with a title and a legend, and the panels below them.
pub fn draw(title: &str, legend: &[(Mark, RGBColor, String)], panels: &[Panel]) -> Result<Picture> {
    let mut svg = String::new();
    let head = TITLE + LEGEND * i32::try_from(legend.len())?;
    {
        let card = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT + head.unsigned_abs())).into_drawing_area();
        card.fill(&CARD)?;
        card.draw_text(title, &text(20.0), (20, 16))?;
        for (row, (mark, color, what)) in (0..).zip(legend) {
            let middle = TITLE + LEGEND * row + LEGEND / 2;
            match mark {
                Mark::Line => card.draw(&PathElement::new(vec![(20, middle), (44, middle)], color.stroke_width(3)))?,
                Mark::Dot => card.draw(&Circle::new((32, middle), 4, color.filled()))?,
                Mark::Ring => card.draw(&Circle::new((32, middle), 4, color.stroke_width(1)))?,
                Mark::Band => card.draw(&Rectangle::new([(20, middle - 7), (44, middle + 7)], color.mix(BAND).filled()))?,
            }
            card.draw_text(what, &text(16.0), (54, middle - 6))?;
        }
        for (area, panel) in card.split_vertically(head).1.split_evenly((1, panels.len())).iter().zip(panels) {
            let mut chart = chart(area, &panel.x, &panel.y)?;
            panel.layers.iter().try_for_each(|layer| draw_layer(&mut chart, layer))?;
        }
        card.present()?;
    }
    Ok(Picture { title: title.to_owned(), svg: with_dark_colors(&svg) })
}

fn text(size: f64) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// Grid, axes and their labels, and a place for what is measured. Without labels the y axis takes no room.
fn chart<'a>(area: &Area<'a>, x: &Axis, y: &Axis) -> Result<Chart<'a>> {
    let mut chart = ChartBuilder::on(area)
        .margin(24)
        .x_label_area_size(44)
        .y_label_area_size(if y.labels > 0 { 64 } else { 0 })
        .build_cartesian_2d(x.span.clone(), y.span.clone())?;
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT).bold_line_style(GRID).axis_style(INK).label_style(text(15.0)).axis_desc_style(text(16.0));
    mesh.x_desc(x.what).x_labels(x.labels).x_label_formatter(&x.format);
    mesh.y_desc(y.what).y_labels(y.labels).y_label_formatter(&y.format);
    mesh.draw()?;
    Ok(chart)
}

fn draw_layer(chart: &mut Chart, layer: &Layer) -> Result<()> {
    match layer {
        // Wide enough to be seen beside a band.
        Layer::Marks(Mark::Line, color, points) => {
            chart.draw_series([PathElement::new(points.clone(), color.stroke_width(2))])?
        }
        Layer::Marks(Mark::Dot, color, points) => {
            chart.draw_series(points.iter().map(|at| Circle::new(*at, 4, color.filled())))?
        }
        Layer::Marks(Mark::Ring, color, points) => {
            chart.draw_series(points.iter().map(|at| Circle::new(*at, 4, color.stroke_width(1))))?
        }
        Layer::Marks(Mark::Band, color, points) => {
            let ends = points.first().zip(points.last());
            chart.draw_series(ends.map(|(from, to)| Rectangle::new([*from, *to], color.mix(BAND).filled())))?
        }
        Layer::Text(what, at) => chart.draw_series([Text::new(what.clone(), *at, text(16.0))])?,
    };
    Ok(())
}

/// A logarithmic axis of times, from a power of ten, this exponent's, to 100 s, beyond all that is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times(f64);

impl Times {
    /// The axis that shows the shortest that is above 0.
    pub fn of(seconds: impl IntoIterator<Item = f64>) -> Self {
        let least = seconds.into_iter().filter(|value| *value > 0.0).fold(1.0, f64::min);
        Self(least.log10().floor())
    }

    /// Where a time is on the axis; those that are too short for it, or negative, are at its beginning.
    pub fn at(self, seconds: f64) -> f64 {
        seconds.max(10.0_f64.powf(self.0)).log10()
    }

    pub fn axis(self, what: &str) -> Axis<'_> {
        // A label for each power of ten.
        Axis { what, span: self.0..2.0, labels: (3.0 - self.0) as usize, format: |place| in_seconds(&10.0_f64.powf(*place)) }
    }
}

pub fn plain(value: &f64) -> String {
    format!("{}", (value * 1e4).round() / 1e4)
}

pub fn in_seconds(value: &f64) -> String {
    format!("{} s", plain(value))
}

pub fn percent(value: &f64) -> String {
    format!("{} %", plain(value))
}

/// The same with rules for those who prefer dark pages.
fn with_dark_colors(svg: &str) -> String {
    let rule = |(light, dark): &(RGBColor, &str)| {
        let light = format!("#{:02X}{:02X}{:02X}", light.0, light.1, light.2);
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    };
    let rules: String = DARK.iter().map(rule).collect();
    svg.replacen(">\n", &format!(">\n<style>@media (prefers-color-scheme:dark){{{rules}}}</style>\n"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_of_a_picture_has_one_for_dark_pages() {
        let legend = [(Mark::Line, BLUE, "line".to_owned()), (Mark::Band, OCHRE, "a < b".to_owned())];
        let svg = draw("title", &legend, &[]).expect("a picture").svg;
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(svg.contains("[fill=\"#FFFFFF\"]{fill:#0D1117}") && svg.contains("a &lt; b"), "{svg}");
        let body = svg.split_once("</style>").expect("a style").1;
        for used in body.split("=\"#").skip(1).map(|rest| &rest[..6]) {
            assert!(svg.contains(&format!("[fill=\"#{used}\"]")), "{used}");
        }
    }

    #[test]
    fn an_axis_of_times_begins_at_a_power_of_ten_and_labels_each() {
        let times = Times::of([0.013, 5.0, -1.0]);
        assert_eq!([times.at(1.0), times.at(0.01), times.at(-1.0)], [0.0, -2.0, -2.0]);
        assert_eq!((times.axis("").labels, Times::of([-1.0])), (5, Times(0.0)));
    }
}
