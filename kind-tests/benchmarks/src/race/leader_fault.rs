//! What happens to the leader in mid-outage.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What happens to the leader. There is another replica, but where it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LeaderFault {
    /// SIGKILL.
    Killed,
    /// SIGTERM, as in a rollout.
    Terminated,
    /// SIGSTOP, and it never goes on.
    Stopped,
    /// Its way to all shoots swallows what is sent.
    ShootsCut,
    /// Its way to the seed does.
    SeedCut,
    /// SIGKILL; it is the only one, and is started again a second later, as by its kubelet.
    Restarted,
    /// Nothing: the other replica has only to keep still.
    None,
}

impl LeaderFault {
    /// All that happen in mid-outage.
    pub const FAULTS: [Self; 6] = [
        Self::Killed,
        Self::Terminated,
        Self::Stopped,
        Self::ShootsCut,
        Self::SeedCut,
        Self::Restarted,
    ];

    /// Its name in the JSON line.
    pub fn key(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().replace('-', "_"))
            .unwrap_or_default()
    }

    /// As a table says it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Killed => "leader killed",
            Self::Terminated => "leader asked to end",
            Self::Stopped => "leader stopped",
            Self::ShootsCut => "leader's way to the shoots cut",
            Self::SeedCut => "leader's way to the seed cut",
            Self::Restarted => "only replica killed and started again",
            Self::None => "leader left alone",
        }
    }
}
