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
