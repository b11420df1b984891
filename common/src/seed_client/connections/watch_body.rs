//! The body of an open watch, which ends early on a connection that seems to be dead.
//!
//! A watch may give nothing for as long as nothing happens, and so does one whose other end is gone
//! behind a proxy that still answers the kernel. A request that was given up is the sign that tells
//! them apart: it went the same way.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Body, Frame};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Instant, sleep_until};
use tower::BoxError;

use super::ResponseBody;

/// A watch that gives no byte for this time after a request was given up is ended: as long as the
/// kernel takes to give up a connection whose other end is gone.
const SILENCE: Duration = Duration::from_secs(30);

/// A watch, and what is known of its connection.
struct WatchBody {
    body: ResponseBody,
    given_up: Arc<Notify>,
    /// Ready once a request was given up after the last byte.
    suspected: Pin<Box<OwnedNotified>>,
    /// Time the first request was given up after the last byte.
    suspect_since: Option<Instant>,
}

/// The body as it comes, until the connection seems to be dead. Then it fails as one does that the
/// kernel gives up: whoever follows the watch lists again, on another connection.
pub(super) fn until_silent(
    body: ResponseBody,
    given_up: Arc<Notify>,
) -> impl Body<Data = Bytes, Error = BoxError> + Send {
    let watch = WatchBody {
        body,
        suspected: Box::pin(Arc::clone(&given_up).notified_owned()),
        given_up,
        suspect_since: None,
    };
    let frames = stream::unfold(watch, async |mut watch| {
        let frame = watch.next().await?;
        Some((frame, watch))
    });
    StreamBody::new(frames.fuse())
}

impl WatchBody {
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        loop {
            let suspected = self.suspect_since.is_some();
            let end = self.suspect_since.unwrap_or_else(Instant::now) + SILENCE;
            tokio::select! {
                biased;
                frame = self.body.frame() => {
                    self.suspect_since = None;
                    self.suspected.set(Arc::clone(&self.given_up).notified_owned());
                    return frame;
                }
                () = &mut self.suspected, if !suspected => {
                    self.suspect_since = Some(Instant::now());
                }
                () = sleep_until(end), if suspected => {
                    return Some(Err("silent for 30 s since a request was given up".into()));
                }
            }
        }
    }
}
