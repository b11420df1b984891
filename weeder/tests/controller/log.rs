//! What the weeders of this test process say: every line, at every level, is searched for their credentials.

use std::sync::{Arc, Mutex, Once};

use common::logging::{Level, Sink, ZapLayer, ZapOptions};
use serde_json::Value;
use tracing::instrument::WithSubscriber;
use tracing_subscriber::layer::SubscriberExt;

/// The weeder's token on the seed.
pub const TOKEN: &str = "t0k3n-0f-th3-w33d3r";

static LEAKS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static LISTENING: Once = Once::new();

struct Listener;

impl Sink for Listener {
    fn write(&self, line: Vec<u8>) {
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains(TOKEN) {
            LEAKS.lock().unwrap().push(line);
        }
    }
}

/// Begins to listen to all that is logged in this process.
pub fn listen() {
    LISTENING.call_once(|| {
        let options = ZapOptions { level: Level::Verbose(u32::MAX), ..ZapOptions::default() };
        let layer = ZapLayer::new(options, Listener, || std::time::SystemTime::UNIX_EPOCH.into());
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
    });
}

/// All that is logged by what is done here.
pub async fn hear<T>(act: impl Future<Output = T>) -> (T, Vec<Value>) {
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<Value>>>);
    impl Sink for Lines {
        fn write(&self, line: Vec<u8>) {
            self.0.lock().unwrap().push(serde_json::from_slice(&line).unwrap());
        }
    }
    let lines = Lines::default();
    let layer = ZapLayer::new(ZapOptions::default(), lines.clone(), || std::time::SystemTime::UNIX_EPOCH.into());
    let done = act.with_subscriber(tracing_subscriber::registry().with(layer)).await;
    let heard = lines.0.lock().unwrap().clone();
    (done, heard)
}

/// Fails if the credential has been logged so far, or is in this text.
pub fn check(text: &str) {
    let leaks = LEAKS.lock().unwrap().clone();
    assert!(leaks.is_empty(), "{leaks:#?}");
    assert!(!text.contains(TOKEN), "{text}");
}
