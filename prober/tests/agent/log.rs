//! What the probers of this test process say: every line, at every level, is searched for the credentials in use.

use std::sync::{Mutex, Once};

use chrono::Utc;
use common::logging::{Level, Sink, ZapLayer, ZapOptions};
use tracing_subscriber::layer::SubscriberExt;

/// The prober's token on the seed.
pub const SEED_TOKEN: &str = "t0k3n-0f-th3-pr0b3r-0n-th3-s33d";
/// That of another replica.
pub const STANDBY_TOKEN: &str = "t0k3n-0f-th3-st4ndby-0n-th3-s33d";
/// The token of both on the shoot.
pub const SHOOT_TOKEN: &str = "t0k3n-0f-th3-pr0b3r-0n-th3-sh00t";

static LEAKS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static LISTENING: Once = Once::new();

struct Listener;

impl Sink for Listener {
    fn write(&self, line: Vec<u8>) {
        let line = String::from_utf8_lossy(&line).into_owned();
        if tells(&line) {
            LEAKS.lock().expect("no panic while locked").push(line);
        }
    }
}

/// Whether a text tells a credential.
pub fn tells(text: &str) -> bool {
    [SEED_TOKEN, STANDBY_TOKEN, SHOOT_TOKEN].iter().any(|token| text.contains(token))
}

/// Begins to listen to all that is logged in this process.
pub fn listen() {
    LISTENING.call_once(|| {
        let options = ZapOptions { level: Level::Verbose(u32::MAX), ..ZapOptions::default() };
        let subscriber = tracing_subscriber::registry().with(ZapLayer::new(options, Listener, Utc::now));
        tracing::subscriber::set_global_default(subscriber).expect("nobody else listens");
    });
}

/// Fails if a credential has been logged so far.
pub fn check() {
    let leaks = LEAKS.lock().expect("no panic while locked").clone();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

#[tokio::test]
async fn a_credential_in_the_log_would_be_heard() {
    listen();
    assert!(tells(&format!("a line with {SEED_TOKEN} in it")));
    // A logger of its own, so that the lines of the other tests are not mixed with this one.
    let heard = std::sync::Arc::new(Mutex::new(false));
    struct One(std::sync::Arc<Mutex<bool>>);
    impl Sink for One {
        fn write(&self, line: Vec<u8>) {
            *self.0.lock().expect("no panic while locked") |= tells(&String::from_utf8_lossy(&line));
        }
    }
    let options = ZapOptions { level: Level::Verbose(u32::MAX), ..ZapOptions::default() };
    let layer = ZapLayer::new(options, One(heard.clone()), Utc::now);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        tracing::trace!(target: "prober::shoot_client", header = format!("Bearer {SHOOT_TOKEN}"), "asked");
    });
    assert!(*heard.lock().expect("no panic while locked"));
}
