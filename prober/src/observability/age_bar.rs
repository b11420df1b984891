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

    fn bar(age: f64) -> String {
        age_bar(age, 30.0, 40.0, "bad").into_string()
    }

    #[test]
    fn the_bar_ends_behind_the_marks_it_has_passed_and_nothing_is_longer_than_it() {
        for (age, width) in [
            (-1.0, "0.00%"),
            (20.0, "37.50%"),
            (30.0, "56.25%"),
            (40.0, "75.00%"),
            (9_000.0, "100.00%"),
        ] {
            assert!(
                bar(age).contains(&format!("<rect y=\"25%\" width=\"{width}\"")),
                "{}",
                bar(age)
            );
        }
        assert!(
            bar(20.0).contains("<line x1=\"56.25%\"") && bar(20.0).contains("<line x1=\"75.00%\""),
            "{}",
            bar(20.0)
        );
    }

    #[test]
    fn a_lease_that_expires_after_its_node_is_unknown_has_both_marks() {
        let bar = age_bar(0.0, 15.0, 10.0, "good").into_string();
        for mark in ["<line x1=\"75.00%\"", "<line x1=\"50.00%\""] {
            assert!(bar.contains(mark), "{bar}");
        }
    }

    #[test]
    fn what_the_bar_shows_is_said_as_well() {
        assert!(
            bar(43.7).contains("aria-label=\"43.7s; expired after 30s, Unknown after 40s\""),
            "{}",
            bar(43.7)
        );
    }
}
