//! What there is to report.

/// Why a window opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The Service was ready when this process began to work.
    Start,
    /// The Service became ready, or other endpoints are ready than before the watch broke.
    Recovery,
}

/// Why a window closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its time was over.
    Over,
    /// The Service is not ready any more.
    NotReady,
    /// A new one takes its place.
    Renewed,
    /// The config does not name the Service any more.
    Dropped,
}

/// What happened to a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Where.
    pub namespace: String,
    /// The Service's place in the config.
    pub service: usize,
    /// What.
    pub event: Event,
}

/// What happens to windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It opened.
    Opened(Cause),
    /// It closed.
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
