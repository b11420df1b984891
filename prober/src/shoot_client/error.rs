//! Errors of a probe, and the category that metrics, logs and tests know them by.

use std::error::Error;
use std::io::ErrorKind;
use std::time::Duration;

use common::transport::{NameError, Unusable, causes};
use http_body_util::LengthLimitError;
use hyper_util::client::legacy;
use prober_core::shoot::ProbeFailure;
use prober_core::span;
use strum::{IntoStaticStr, VariantNames};

use super::wire::DecodeError;

/// The most letters of an error of TLS that are shown.
const MAX_TLS_ERROR: usize = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum ProbeStep {
    Kubeconfig,
    Leases,
    Nodes,
    /// Finding out which nodes have Machines, on the seed.
    Machines,
}

#[derive(Debug, thiserror::Error)]
#[error("{stage}: {cause}", stage = .stage.into_str())]
pub struct ProbeError {
    pub stage: ProbeStep,
    #[source]
    pub cause: Cause,
}

impl ProbeError {
    /// Returns what matters of it for the time of the next probe.
    pub(crate) fn failure(&self) -> ProbeFailure {
        match &self.cause {
            Cause::Throttled {
                retry_after: Some(after),
            } => ProbeFailure::Throttled(span(*after)),
            _ => ProbeFailure::Other,
        }
    }
}

/// Cause of a failed probe, which says nothing about the shoot's nodes.
#[derive(Debug, thiserror::Error, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Cause {
    #[error("the Secret with the kubeconfig does not exist")]
    NoSecret,
    /// Objects of the seed cannot be seen at present (D-27).
    #[error("the seed's {0} are not known at present")]
    SeedUnknown(&'static str),
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[from] Unusable),
    #[error("no answer in time")]
    Timeout,
    #[error("the host name cannot be resolved: {0}")]
    Dns(String),
    #[error("no connection: {0}")]
    Connect(String),
    #[error("TLS: {0}")]
    Tls(String),
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error("the credentials are not accepted (401)")]
    Unauthorized,
    #[error("access is denied (403)")]
    Forbidden,
    #[error("not found (404)")]
    NotFound,
    #[error("the snapshot of the list is gone (410)")]
    Gone,
    #[error("the API server asks to come back later (429)")]
    Throttled { retry_after: Option<Duration> },
    #[error("the API server failed ({0})")]
    Server(u16),
    /// A redirect, which is not followed, or any other status.
    #[error("unexpected status {0}")]
    Status(u16),
    /// More than is read of an answer, of the pages of a list, or is held of it.
    #[error("the answer is larger than any honest one")]
    TooLarge,
    #[error("{0}")]
    Decode(DecodeError),
}

impl From<DecodeError> for Cause {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::TooLarge => Self::TooLarge,
            // Any other kind is that a field ends behind the body's end.
            DecodeError::Read(error) if error.kind() == ErrorKind::Other => Self::of(&error),
            error => Self::Decode(error),
        }
    }
}

impl Cause {
    pub const fn category(&self) -> &'static str {
        self.into_str()
    }

    /// True if a kept connection may be to blame, so that a fresh one is worth a second attempt.
    pub(super) const fn may_be_stale_connection(&self) -> bool {
        matches!(
            self,
            Self::Timeout | Self::Connect(_) | Self::Tls(_) | Self::Dns(_) | Self::Broken(_)
        )
    }

    /// Sorts an error of the HTTP client. The text of such errors contains no URL and no header.
    pub(super) fn of(error: &(dyn Error + 'static)) -> Self {
        let chain = || causes(error);
        let timed_out = |error: &std::io::Error| error.kind() == ErrorKind::TimedOut;
        if chain().any(|error| error.downcast_ref().is_some_and(timed_out)) {
            return Self::Timeout;
        }
        if chain().any(|error| error.is::<LengthLimitError>()) {
            return Self::TooLarge;
        }
        if let Some(name) = chain().find_map(|error| error.downcast_ref::<NameError>()) {
            return Self::Dns(name.to_string());
        }
        if let Some(tls) = chain().find_map(|error| error.downcast_ref::<rustls::Error>()) {
            // A certificate may have any number of names.
            return Self::Tls(tls.to_string().chars().take(MAX_TLS_ERROR).collect());
        }
        let innermost = chain().last().map(ToString::to_string).unwrap_or_default();
        let mut client = chain().filter_map(|error| error.downcast_ref::<legacy::Error>());
        if client.any(legacy::Error::is_connect) {
            Self::Connect(innermost)
        } else {
            Self::Broken(innermost)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_retry_after_is_a_rest() {
        let failure = |retry_after| {
            let (stage, cause) = (ProbeStep::Leases, Cause::Throttled { retry_after });
            ProbeError { stage, cause }.failure()
        };
        let after = Duration::from_secs(5);
        assert_eq!(
            failure(Some(after)),
            ProbeFailure::Throttled(span(after)),
            "as it says"
        );
        assert_eq!(failure(None), ProbeFailure::Other, "as any failure");
    }
}
