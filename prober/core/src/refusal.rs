//! Failures to scale a dependent.

use std::time::Duration;

use strum::IntoStaticStr;

use crate::config::ResourceRef;

/// Reason why a dependent could not be read, written or scaled. Its word is a label of metrics and
/// logs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, IntoStaticStr, thiserror::Error)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Refusal {
    /// This process does not lead, or cannot be sure of it any more.
    #[error("this process does not lead")]
    NotLeading,
    /// The probe that the write rests on is out of date.
    #[error("this process was suspended")]
    Suspended,
    #[error("no matches for kind {:?} in version {:?}", .0.kind, .0.api_version)]
    NoSuchKind(ResourceRef),
    /// The seed's view of it is not filled, or has been broken for too long.
    #[error("its state on the seed is not known at present")]
    SeedUnknown,
    /// It does not exist, though it must, or does not exist any more.
    #[error("not found")]
    NotFound,
    /// It has changed since what the request rests on.
    #[error("it was changed in the meantime (409)")]
    Conflict,
    #[error("the seed's API server asks to come back later (429)")]
    Throttled(Option<Duration>),
    /// 401 or 403: a right is missing, or an admission webhook or policy refuses.
    #[error("access is denied ({code}): {said}")]
    #[strum(serialize = "forbidden")]
    Denied { code: u16, said: String },
    /// 5xx: an error of the API server's own.
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
