//! State of a view's watch: how far the view can be trusted.
//!
//! ```text
//! Unlisted, NoSuchKind --listed--> Pausing --works--> Open --ended--> Pausing
//!                                     |                |
//!                                     '-----failed-----'--> Broken --listed--> Pausing
//!                                                              '-----works--> Open
//! ```

use tokio::time::Instant;

use super::MAX_BLIND;

/// `live` is the start of the watch's uninterrupted work, `since` of the time in which nothing is
/// observed. `listed` is the time of the last list; `None` if the watch has resumed without one
/// after an interruption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WatchState {
    #[default]
    Unlisted,
    /// Nothing was listed yet, since the API server does not serve the kind.
    NoSuchKind,
    Open {
        live: Instant,
        listed: Option<Instant>,
    },
    /// After a list or an ordinary end, until the next watch works.
    Pausing {
        live: Instant,
        listed: Option<Instant>,
        since: Instant,
    },
    Broken {
        listed: Option<Instant>,
        since: Instant,
    },
}

use WatchState::{Broken, NoSuchKind, Open, Pausing, Unlisted};

impl WatchState {
    /// True if what was not seen can be taken not to exist.
    pub(super) fn is_known(self, now: Instant) -> bool {
        match self {
            Unlisted | NoSuchKind => false,
            Open { .. } => true,
            Pausing { since, .. } | Broken { since, .. } => now - since < MAX_BLIND,
        }
    }

    /// Start of the watch's uninterrupted work; `None` while it does not work.
    pub(super) fn live_since(self, now: Instant) -> Option<Instant> {
        match self {
            Open { live, .. } => Some(live),
            Pausing { live, .. } if self.is_known(now) => Some(live),
            _ => None,
        }
    }

    pub(super) fn listed(self) -> Option<Instant> {
        match self {
            Unlisted | NoSuchKind => None,
            Open { listed, .. } | Pausing { listed, .. } | Broken { listed, .. } => listed,
        }
    }

    /// A complete list was read.
    #[must_use]
    pub(super) fn after_list(self, now: Instant) -> Self {
        Pausing {
            live: self.live_since(now).unwrap_or(now),
            listed: Some(now),
            since: now,
        }
    }

    /// The watch works, and has shown what happened since the last list or watch.
    #[must_use]
    pub(super) fn working(self, now: Instant) -> Self {
        let live = self.live_since(now);
        match self {
            // Whatever it shows, it is not all there is.
            Unlisted | NoSuchKind => self,
            _ => Open {
                live: live.unwrap_or(now),
                listed: live.and(self.listed()),
            },
        }
    }

    /// The watch ended as watches do, and is about to continue.
    #[must_use]
    pub(super) fn after_end(self, now: Instant) -> Self {
        match self {
            Open { live, listed } => Pausing {
                live,
                listed,
                since: now,
            },
            other => other,
        }
    }

    /// A list or the watch failed.
    #[must_use]
    pub(super) fn after_failure(self, now: Instant) -> Self {
        match self {
            Open { listed, .. } => Broken { listed, since: now },
            Pausing { listed, since, .. } => Broken { listed, since },
            other => other,
        }
    }
}
