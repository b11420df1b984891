//! What happens to windows and is reported: that one opened, for what cause; that one closed, and
//! what ended it.

use strum::{IntoStaticStr, VariantNames};

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Cause {
    /// The Service was ready when this process began to work.
    Start,
    /// The Service became ready, or other endpoints are ready than before the watch broke.
    Recovery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum End {
    Over,
    NotReady,
    /// A new one takes its place.
    Renewed,
    /// The config does not name the Service any more.
    Dropped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub namespace: String,
    /// The Service's place in the config.
    pub service: usize,
    pub event: Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Opened(Cause),
    Closed(End),
}
