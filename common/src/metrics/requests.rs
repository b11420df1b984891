//! `rest_client_requests_total`: requests to the seed's API server, under client-go's name and
//! labels.

use http::{Method, StatusCode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Counts requests by the status they were answered with. Cheap to clone; all clones count
/// together.
#[derive(Clone, Debug, Default)]
pub struct RequestCounter(Family<[(&'static str, String); 3], Counter>);

impl RequestCounter {
    pub fn register(registry: &mut Registry) -> Self {
        let counter = Self::default();
        registry.register(
            "rest_client_requests",
            "Requests to the seed's API server",
            counter.0.clone(),
        );
        counter
    }

    /// Counts a request that is over; `status` is none when there was no answer, which is
    /// `<error>`, as client-go writes it.
    pub(crate) fn count(&self, host: &str, method: &Method, status: Option<StatusCode>) {
        let code = status.map_or("<error>".to_owned(), |status| status.as_u16().to_string());
        let labels = [
            ("code", code),
            ("method", method.to_string()),
            ("host", host.to_owned()),
        ];
        self.0.get_or_create(&labels).inc();
    }
}
