//! What all pictures share: a card that brings its own background, light or dark as the reader
//! prefers, with a title and a legend.

use std::ops::Range;

use anyhow::Result;
use plotters::backend::SVGBackend;
use plotters::chart::ChartBuilder;
use plotters::drawing::IntoDrawingArea;
use plotters::element::{Circle, DynElement, IntoDynElement, PathElement, Rectangle};
use plotters::style::{Color, IntoFont, RGBColor, ShapeStyle, TRANSPARENT, TextStyle};

/// A colour, and what takes its place for readers who prefer dark pages.
#[derive(Clone, Copy)]
pub struct Shade(RGBColor, &'static str);

const CARD: Shade = Shade(RGBColor(0xFF, 0xFF, 0xFF), "#0D1117");
pub const INK: Shade = Shade(RGBColor(0x1F, 0x23, 0x28), "#F0F6FC");
const GRID: Shade = Shade(RGBColor(0xD1, 0xD9, 0xE0), "#3D444D");
pub const BLUE: Shade = Shade(RGBColor(0x09, 0x69, 0xDA), "#4493F8");
pub const GREEN: Shade = Shade(RGBColor(0x1A, 0x7F, 0x37), "#3FB950");
pub const RED: Shade = Shade(RGBColor(0xCF, 0x22, 0x2E), "#F85149");
pub const OCHRE: Shade = Shade(RGBColor(0x9A, 0x67, 0x00), "#D29922");
pub const PURPLE: Shade = Shade(RGBColor(0x82, 0x50, 0xDF), "#AB7DF8");
const ALL: [Shade; 8] = [CARD, INK, GRID, BLUE, GREEN, RED, OCHRE, PURPLE];

const WIDTH: u32 = 760;
/// Of what is below title and legend.
const HEIGHT: u32 = 340;
const TITLE: i32 = 44;
const LEGEND: i32 = 22;
/// How opaque a band is.
const BAND: f64 = 0.25;

type Element<'a, C> = DynElement<'static, SVGBackend<'a>, C>;

pub struct Picture {
    pub title: String,
    pub svg: String,
}

/// How a thing is drawn, in a panel and in the legend.
#[derive(Clone, Copy)]
pub enum ChartMark {
    Line,
    Dot,
    Ring,
    /// From the first point to the last.
    Band,
}

/// Points that are drawn alike, and what the legend says of them, if anything.
pub struct Layer {
    pub mark: ChartMark,
    pub color: Shade,
    pub points: Vec<(f64, f64)>,
    pub legend: Option<String>,
}

/// One of the charts of a picture, which stand side by side. Layers are drawn in order.
pub struct Panel<'a> {
    pub x: Axis<'a>,
    pub y: Axis<'a>,
    pub layers: Vec<Layer>,
}

/// An axis: what it measures, from where to where, how many labels it has at most (without any the
/// y axis takes no room), and how they are written.
pub struct Axis<'a> {
    pub what: &'a str,
    pub span: Range<f64>,
    pub labels: usize,
    pub format: fn(&f64) -> String,
}

/// A picture with a title and a legend, and the panels below them.
pub fn draw(title: &str, panels: &[Panel]) -> Result<Picture> {
    let layers = panels.iter().flat_map(|panel| &panel.layers);
    let legend: Vec<_> = layers
        .filter_map(|layer| Some((layer.mark, layer.color, layer.legend.as_ref()?)))
        .collect();
    let mut svg = String::new();
    let head = TITLE + LEGEND * i32::try_from(legend.len())?;
    {
        let card = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT + head.unsigned_abs()))
            .into_drawing_area();
        card.fill(&CARD.0)?;
        card.draw_text(title, &text(20.0), (20, 16))?;
        for (row, (mark, color, what)) in (0..).zip(legend) {
            let middle = TITLE + LEGEND * row + LEGEND / 2;
            let points = match mark {
                ChartMark::Line => vec![(20, middle), (44, middle)],
                ChartMark::Dot | ChartMark::Ring => vec![(32, middle)],
                ChartMark::Band => vec![(20, middle - 7), (44, middle + 7)],
            };
            elements(mark, color, 3, &points)
                .iter()
                .try_for_each(|element| card.draw(element))?;
            card.draw_text(what, &text(16.0), (54, middle - 6))?;
        }
        for (area, Panel { x, y, layers }) in card
            .split_vertically(head)
            .1
            .split_evenly((1, panels.len()))
            .iter()
            .zip(panels)
        {
            let mut chart = ChartBuilder::on(area)
                .margin(24)
                .x_label_area_size(44)
                .y_label_area_size(if y.labels > 0 { 64 } else { 0 })
                .build_cartesian_2d(x.span.clone(), y.span.clone())?;
            let mut mesh = chart.configure_mesh();
            mesh.light_line_style(TRANSPARENT)
                .bold_line_style(GRID.0)
                .axis_style(INK.0);
            mesh.label_style(text(15.0)).axis_desc_style(text(16.0));
            mesh.x_desc(x.what)
                .x_labels(x.labels)
                .x_label_formatter(&x.format);
            mesh.y_desc(y.what)
                .y_labels(y.labels)
                .y_label_formatter(&y.format);
            mesh.draw()?;
            for Layer {
                mark,
                color,
                points,
                ..
            } in layers
            {
                // Wide enough to be seen beside a band.
                chart.draw_series(elements(*mark, *color, 2, points))?;
            }
        }
        card.present()?;
    }
    Ok(Picture {
        title: title.to_owned(),
        svg: with_dark_colors(&svg),
    })
}

fn text(size: f64) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK.0)
}

/// What is drawn at these points, in pixels or in a panel's own units; lines so wide.
fn elements<'a, C: Clone + 'static>(
    mark: ChartMark,
    Shade(color, _): Shade,
    width: u32,
    points: &[C],
) -> Vec<Element<'a, C>> {
    let each = |style: ShapeStyle| {
        points
            .iter()
            .map(|at| Circle::new(at.clone(), 4, style).into_dyn())
            .collect()
    };
    match (mark, points) {
        (ChartMark::Dot, _) => each(color.filled()),
        (ChartMark::Ring, _) => each(color.stroke_width(1)),
        (ChartMark::Line, _) => {
            vec![PathElement::new(points, color.stroke_width(width)).into_dyn()]
        }
        (ChartMark::Band, [from, .., to]) => {
            vec![Rectangle::new([from.clone(), to.clone()], color.mix(BAND).filled()).into_dyn()]
        }
        (ChartMark::Band, _) => Vec::new(),
    }
}

pub fn plain(value: &f64) -> String {
    format!("{}", (value * 1e4).round() / 1e4)
}

pub fn in_seconds(value: &f64) -> String {
    format!("{} s", plain(value))
}

/// The same with rules for those who prefer dark pages.
fn with_dark_colors(svg: &str) -> String {
    let rule = |Shade(light, dark): &Shade| {
        let light = format!("#{:02X}{:02X}{:02X}", light.0, light.1, light.2);
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    };
    let rules: String = ALL.iter().map(rule).collect();
    svg.replacen(
        ">\n",
        &format!(">\n<style>@media (prefers-color-scheme:dark){{{rules}}}</style>\n"),
        1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_of_a_picture_has_one_for_dark_pages() {
        let axis = || Axis {
            what: "",
            span: 0.0..1.0,
            labels: 2,
            format: plain,
        };
        let layer = |mark, color| Layer {
            mark,
            color,
            points: vec![(0.0, 0.0), (1.0, 1.0)],
            legend: Some("a < b".to_owned()),
        };
        let layers = vec![layer(ChartMark::Line, BLUE), layer(ChartMark::Band, OCHRE)];
        let svg = draw(
            "title",
            &[Panel {
                x: axis(),
                y: axis(),
                layers,
            }],
        )
        .expect("a picture")
        .svg;
        assert!(
            svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"),
            "{svg}"
        );
        assert!(
            svg.contains("[fill=\"#FFFFFF\"]{fill:#0D1117}") && svg.contains("a &lt; b"),
            "{svg}"
        );
        let body = svg.split_once("</style>").expect("a style").1;
        for used in body.split("=\"#").skip(1).map(|rest| &rest[..6]) {
            assert!(svg.contains(&format!("[fill=\"#{used}\"]")), "{used}");
        }
    }
}
