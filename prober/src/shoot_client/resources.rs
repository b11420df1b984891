//! Resources that the clients of all shoots share: how their API servers are dialed, and their owner
//! records looked up.

use std::sync::Arc;

use common::transport::Dialer;
use futures::future::BoxFuture;

/// Looks up the TXT records of a name; `None` if that fails.
pub(crate) type Records = dyn Fn(String) -> BoxFuture<'static, Option<Vec<String>>> + Send + Sync;

pub struct Resources {
    pub(super) dialer: Dialer,
    /// In place of the DNS servers of the config.
    pub(crate) records: Option<Arc<Records>>,
}

impl Resources {
    /// By TCP, with the system's names.
    pub fn of_system() -> Self {
        Self::dialing(Dialer::default())
    }

    /// With another way to the API servers than TCP.
    pub fn dialing(dialer: Dialer) -> Self {
        Self {
            dialer,
            records: None,
        }
    }

    /// With another way to owner records than DNS.
    pub fn with_records(
        self,
        records: impl Fn(String) -> BoxFuture<'static, Option<Vec<String>>> + Send + Sync + 'static,
    ) -> Self {
        let records: Arc<Records> = Arc::new(records);
        Self {
            records: Some(records),
            ..self
        }
    }
}
