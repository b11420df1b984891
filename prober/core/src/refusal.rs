//! Failures to scale a dependent.

use std::time::Duration;

use strum::IntoStaticStr;

use crate::replicas::Unscalable;

/// Reason why a dependent could not be read, written or scaled. Its name is a label of metrics and
/// logs.
#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr, thiserror::Error)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Refusal {
    /// This process does not lead, or may have lost leadership.
    #[error("this process does not lead")]
    NotLeading,
    /// The probe behind the write is out of date.
    #[error("this process was suspended")]
    Suspended,
    #[error("{0}")]
    Unscalable(Unscalable),
    /// The seed's view is not filled, or has been broken for too long.
    #[error("its state on the seed is not known at present")]
    SeedUnknown,
    /// A required dependent does not exist, or one was deleted.
    #[error("not found")]
    NotFound,
    /// It changed after the state that the request is based on.
    #[error("it was changed in the meantime (409)")]
    Conflict,
    #[error("the seed's API server asks to come back later (429)")]
    Throttled(Option<Duration>),
    /// 401 or 403: a permission is missing, or an admission webhook or policy refuses.
    #[error("access is denied ({code}): {said}")]
    #[strum(serialize = "forbidden")]
    Denied { code: u16, said: String },
    /// Any 5xx.
    #[error("the seed's API server answered {code}: {said}")]
    #[strum(serialize = "server")]
    Unavailable { code: u16, said: String },
    #[error("the seed's API server answered {code}: {said}")]
    Status { code: u16, said: String },
    #[error("not done within its timeout: deadline exceeded")]
    Timeout,
    #[error("no answer from the seed's API server: {0}")]
    NoAnswer(String),
}
