//! Resources that the clients of all shoots share: how their API servers are dialed, and their owner
//! records looked up.

use std::sync::Arc;

use common::transport::Dialer;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use tower::service_fn;

use super::names::{LOOK_UPS, look_up};

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
        let permits = Arc::new(Semaphore::new(LOOK_UPS));
        let resolve = service_fn(move |name| look_up(name, Arc::clone(&permits)));
        Self::dialing(Dialer::tcp(resolve))
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
