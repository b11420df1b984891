//! The one classification of what comes of a request to an API server instead of an answer to it.

use std::time::Duration;

use kube::core::Status;
use strum::{IntoStaticStr, VariantNames};

use crate::status_message::retry_after;

/// A failed request, in one word from a fixed set for logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum ApiFailure {
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 404.
    NotFound,
    /// 409.
    Conflict,
    /// 429, and the wait that the API server asks for.
    Throttled(Option<Duration>),
    /// 5xx.
    Server,
    /// Any other status.
    Refused,
    /// No answer, or none that can be decoded.
    NoAnswer,
}

/// Prospects of another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Nothing was done. It may succeed, after this wait if the API server asks for one.
    Later(Option<Duration>),
    /// It may have been done all the same.
    Unknown,
    /// Nothing else, until somebody changes an object, a permission or a policy.
    Never,
}

impl ApiFailure {
    pub const fn retry(self) -> Retry {
        match self {
            Self::Throttled(wait) => Retry::Later(wait),
            // An expired token is replaced by a fresh one a moment later.
            Self::Unauthorized | Self::Conflict => Retry::Later(None),
            // An API server may have done it before it failed.
            Self::Server | Self::NoAnswer => Retry::Unknown,
            Self::Forbidden | Self::NotFound | Self::Refused => Retry::Never,
        }
    }
}

impl From<&kube::Error> for ApiFailure {
    fn from(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::from(&**status),
            _ => Self::NoAnswer,
        }
    }
}

impl From<&Status> for ApiFailure {
    fn from(status: &Status) -> Self {
        match status.code {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            409 => Self::Conflict,
            429 => Self::Throttled(retry_after(status)),
            500.. => Self::Server,
            _ => Self::Refused,
        }
    }
}
