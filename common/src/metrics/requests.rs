//! `rest_client_requests_total`: requests to the seed's API server, under client-go's name and labels.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tower::{Layer, Service};

/// Counts requests by the status they were answered with. Cheap to clone; all clones count together.
#[derive(Clone, Debug, Default)]
pub struct RequestCounter(Family<Labels, Counter>);

#[derive(Clone, Debug)]
pub struct HostCounter {
    counter: RequestCounter,
    host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    /// The status, or `<error>` when there was no answer, as client-go writes it.
    code: String,
    method: String,
    host: String,
}

impl RequestCounter {
    pub fn register(registry: &mut Registry) -> Self {
        let counter = Self::default();
        registry.register("rest_client_requests", "Requests to the seed's API server", counter.0.clone());
        counter
    }

    /// A layer for clients of the API server `host`, which the requests themselves do not name yet when they are counted.
    pub fn of_host(&self, host: &str) -> HostCounter {
        HostCounter { counter: self.clone(), host: host.to_owned() }
    }
}

impl<S> Layer<S> for HostCounter {
    type Service = Counting<S>;

    fn layer(&self, inner: S) -> Counting<S> {
        Counting { inner, counter: self.clone() }
    }
}

#[derive(Clone, Debug)]
pub struct Counting<S> {
    inner: S,
    counter: HostCounter,
}

impl<S, A, B> Service<Request<A>> for Counting<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let open = Open { counter: self.counter.clone(), method: request.method().to_string(), status: None };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            open.end(answer.as_ref().ok().map(Response::status));
            answer
        })
    }
}

/// A request that is counted when it is over: answered, failed, or given up by whoever waited for it.
struct Open {
    counter: HostCounter,
    method: String,
    status: Option<StatusCode>,
}

impl Open {
    fn end(mut self, status: Option<StatusCode>) {
        self.status = status;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let HostCounter { counter, host } = self.counter.clone();
        let code = self.status.map_or("<error>".to_owned(), |status| status.as_u16().to_string());
        counter.0.get_or_create(&Labels { code, method: std::mem::take(&mut self.method), host }).inc();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use prometheus_client::encoding::text::encode;
    use tower::{ServiceExt, service_fn};

    use super::*;

    #[tokio::test]
    async fn every_answer_and_every_lack_of_one_is_counted() {
        let mut registry = Registry::default();
        let client =
            RequestCounter::register(&mut registry).of_host("seed:443").layer(service_fn(async |request: Request<()>| {
                match request.uri().path() {
                    "/lost" => Err("no answer"),
                    "/late" => std::future::pending().await,
                    _ => Ok(Response::builder().status(409).body(()).unwrap()),
                }
            }));
        for uri in ["/conflict", "/lost", "/late"] {
            let request = Request::patch(uri).body(()).unwrap();
            // Whoever waited for the late one has given it up.
            let _ = client.clone().oneshot(request).now_or_never();
        }
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for (code, count) in [("409", 1), ("<error>", 2)] {
            let line = format!("rest_client_requests_total{{code=\"{code}\",method=\"PATCH\",host=\"seed:443\"}} {count}\n");
            assert!(text.contains(&line), "{text}");
        }
    }
}
