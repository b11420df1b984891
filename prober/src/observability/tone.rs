//! Urgency of what is shown.

use strum::IntoStaticStr;

/// Urgency: a class on the page, a colour on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Tone {
    Soft,
    Good,
    Warn,
    Bad,
}
