//! The age of a lease as a bar, with a mark where it counts as expired and one where
//! kube-controller-manager marks its node Unknown.

use maud::{Markup, html};

/// Length of the bar, as a multiple of the later mark; what is older fills it.
const LENGTH: f64 = 4.0 / 3.0;

/// Ages in seconds; the class says the colour.
pub(super) fn age_bar(age: f64, expired_after: f64, unknown_after: f64, class: &str) -> Markup {
    let length = expired_after.max(unknown_after) * LENGTH;
    let percent = |seconds: f64| format!("{:.2}%", 100.0 * (seconds / length).clamp(0.0, 1.0));
    let says = format!("{age:.1}s; expired after {expired_after}s, Unknown after {unknown_after}s");
    html! {
        svg.bar.(class) role="img" aria-label=(says) {
            rect.track y="25%" width="100%" height="50%" {}
            rect y="25%" width=(percent(age)) height="50%" {}
            @for mark in [expired_after, unknown_after].map(percent) { line x1=(mark) x2=(mark) y2="100%" {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_ends_behind_the_marks_it_has_passed_and_nothing_is_longer_than_it() {
        for (age, marks, expected) in [
            (-1.0, [30.0, 40.0], ["0.00%", "56.25%", "75.00%"]),
            (20.0, [30.0, 40.0], ["37.50%", "56.25%", "75.00%"]),
            (9_000.0, [30.0, 40.0], ["100.00%", "56.25%", "75.00%"]),
            (0.0, [15.0, 10.0], ["0.00%", "75.00%", "50.00%"]),
        ] {
            let bar = age_bar(age, marks[0], marks[1], "bad").into_string();
            let [width, first, second] = expected;
            let said = format!(
                "{age:.1}s; expired after {}s, Unknown after {}s",
                marks[0], marks[1]
            );
            for part in [
                format!("<rect y=\"25%\" width=\"{width}\""),
                format!("<line x1=\"{first}\""),
                format!("<line x1=\"{second}\""),
                format!("aria-label=\"{said}\""),
            ] {
                assert!(bar.contains(&part), "no {part} in {bar}");
            }
        }
    }
}
