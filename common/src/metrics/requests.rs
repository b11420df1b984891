//! `rest_client_requests_total`: requests to the seed's API server, under client-go's name and
//! labels; and for how long none of them has succeeded.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

/// Counts requests by the status they were answered with. Cheap to clone; all clones count
/// together.
#[derive(Clone, Debug, Default)]
pub struct RequestCounter {
    counts: Family<[(&'static str, String); 3], Counter>,
    failing: Arc<Mutex<Option<FailureSpan>>>,
}

/// A time in which requests failed and none succeeded.
#[derive(Clone, Copy, Debug)]
struct FailureSpan {
    first: Instant,
    last: Instant,
}

impl RequestCounter {
    pub fn register(registry: &mut Registry) -> Self {
        let counter = Self::default();
        registry.register(
            "rest_client_requests",
            "Requests to the seed's API server",
            counter.counts.clone(),
        );
        counter
    }

    /// Counts a request that is over; `status` is `None` without an answer, which is `<error>`, as
    /// client-go writes it.
    pub(crate) fn count(&self, host: &str, method: &Method, status: Option<StatusCode>) {
        let code = status.map_or("<error>".to_owned(), |status| status.as_u16().to_string());
        let labels = [
            ("code", code),
            ("method", method.to_string()),
            ("host", host.to_owned()),
        ];
        self.counts.get_or_create(&labels).inc();
    }

    /// Notes how a request ended. One succeeded if the API server dealt with it, whatever it said
    /// of the object.
    pub(crate) fn ended(&self, status: Option<StatusCode>) {
        let succeeded = status.is_some_and(|status| {
            !matches!(
                status,
                StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS
            ) && !status.is_server_error()
        });
        let now = Instant::now();
        let mut failing = self.failing.lock();
        *failing = (!succeeded).then(|| FailureSpan {
            first: failing.map_or(now, |failing| failing.first),
            last: now,
        });
    }

    /// The time between the first and the last request of those that failed since one succeeded: a
    /// single one, with nothing requested since, says little.
    pub(crate) fn failing_for(&self) -> Duration {
        let failing = *self.failing.lock();
        failing.map_or(Duration::ZERO, |failing| failing.last - failing.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_fail_for_the_time_between_failures_without_a_success() {
        let requests = RequestCounter::default();
        // The first failure alone says nothing, and a 404 is an answer about an object.
        for (seconds, status, failing) in [
            (1, Some(200), 0),
            (100, None, 0),
            (30, Some(401), 30),
            (30, Some(503), 60),
            (10, Some(429), 70),
            (10, Some(404), 0),
        ] {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            requests.ended(status.map(|code| StatusCode::from_u16(code).unwrap()));
            assert_eq!(requests.failing_for().as_secs(), failing, "{status:?}");
        }
    }
}
