//! What the weeders of this test process say: every line, at every level, is searched for their
//! credentials.

use std::sync::{Arc, LazyLock, Mutex};

use chrono::Utc;
use common::logging::{LevelFilter, ZapLayer};
use serde_json::Value;
use testbed::secrets::Credentials;
use tracing::instrument::WithSubscriber;
use tracing_subscriber::layer::SubscriberExt;

/// The weeder's token on the seed.
pub const TOKEN: &str = "t0k3n-0f-th3-w33d3r";

static CREDENTIALS: LazyLock<Credentials> = LazyLock::new(|| Credentials::of(&[TOKEN]));

/// Begins to listen to all that is logged in this process.
pub fn listen() {
    CREDENTIALS.listen(|sink| ZapLayer::new(LevelFilter::TRACE, sink, Utc::now));
}

/// All that is logged by what is done here.
pub async fn hear<T>(act: impl Future<Output = T>) -> (T, Vec<Value>) {
    let lines = Arc::new(Mutex::new(Vec::<Value>::new()));
    let heard = lines.clone();
    let sink = move |line: Vec<u8>| {
        heard
            .lock()
            .unwrap()
            .push(serde_json::from_slice(&line).unwrap())
    };
    let layer = ZapLayer::new(LevelFilter::DEBUG, sink, Utc::now);
    let done = act
        .with_subscriber(tracing_subscriber::registry().with(layer))
        .await;
    let lines = lines.lock().unwrap().clone();
    (done, lines)
}

/// Fails if the credential has been logged so far, or is in this text.
pub fn check(text: &str) {
    CREDENTIALS.search("what is served", text.as_bytes());
    let leaks = CREDENTIALS.leaks();
    assert!(leaks.is_empty(), "{leaks:#?}");
}
