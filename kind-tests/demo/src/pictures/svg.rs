//! A picture that is put together of shapes and text. How its classes look, by day and at night, says `style.css`.

use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// What was drawn so far. Places are in pixels, from the upper left corner.
#[derive(Default)]
pub struct Svg(String);

impl Svg {
    pub fn rectangle(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        self.add(format_args!("<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"3\"/>"));
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.add(format_args!("<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"));
    }

    pub fn dot(&mut self, class: &str, x: f64, y: f64) {
        self.add(format_args!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"5\"/>"));
    }

    /// Text on a base line; its spaces are kept.
    pub fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.add(format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\" xml:space=\"preserve\">{}</text>", escaped(text)));
    }

    /// The whole file. Its own paper lies under it, so that it can be read on any page.
    pub fn finish(self, title: &str, width: f64, height: f64) -> String {
        let title = escaped(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n\
             <rect class=\"paper\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n{}</svg>\n",
            width - 1.0,
            height - 1.0,
            self.0
        )
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{element}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
