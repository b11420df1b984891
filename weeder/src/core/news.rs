//! What happens to windows and is reported: that one opened, for what cause; that one closed, and what ended it.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The Service was ready when this process began to work.
    Start,
    /// The Service became ready, or other endpoints are ready than before the watch broke.
    Recovery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Cause {
    /// The cause in one word, for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Recovery => "recovery",
        }
    }
}

impl End {
    /// The reason in one word, for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Over => "over",
            Self::NotReady => "not_ready",
            Self::Renewed => "renewed",
            Self::Dropped => "dropped",
        }
    }
}
