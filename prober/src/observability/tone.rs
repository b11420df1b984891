//! How what is shown is to be taken.

use strum::IntoStaticStr;

/// How urgent something is: a class on the page, a colour on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Tone {
    Soft,
    Good,
    Warn,
    Bad,
}
