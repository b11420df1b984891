//! What the probers of this test process say: every line, at every level, is searched for the
//! credentials in use.

use std::sync::{Arc, LazyLock};

use chrono::Utc;
use common::logging::{LevelFilter, ZapLayer};
use parking_lot::Mutex;
use testbed::secrets::Credentials;
use tracing_subscriber::layer::SubscriberExt;

/// The prober's token on the seed.
pub const SEED_TOKEN: &str = "t0k3n-0f-th3-pr0b3r-0n-th3-s33d";
/// That of another replica.
pub const STANDBY_TOKEN: &str = "t0k3n-0f-th3-st4ndby-0n-th3-s33d";
/// The token of both on the shoot.
pub const SHOOT_TOKEN: &str = "t0k3n-0f-th3-pr0b3r-0n-th3-sh00t";

static CREDENTIALS: LazyLock<Credentials> =
    LazyLock::new(|| Credentials::of(&[SEED_TOKEN, STANDBY_TOKEN, SHOOT_TOKEN]));

/// Writes lines of every level.
fn every_level<S: Fn(Vec<u8>) + Send + Sync>(sink: S) -> ZapLayer<S> {
    ZapLayer::new(LevelFilter::TRACE, sink, Utc::now)
}

/// Lines of this process as a prober writes them with Gardener's arguments, from level `info` on.
static LINES: Mutex<String> = Mutex::new(String::new());

/// Begins to listen to all that is logged in this process.
pub fn listen() {
    CREDENTIALS.listen(|search| {
        every_level(move |line: Vec<u8>| {
            let text = String::from_utf8_lossy(&line);
            if ["info", "warn", "error"]
                .iter()
                .any(|level| text.contains(&format!(r#""level":"{level}""#)))
            {
                LINES.lock().push_str(&text);
            }
            search(line);
        })
    });
}

/// All that has been logged so far in this process, from level `info` on.
pub fn lines() -> String {
    LINES.lock().clone()
}

/// Fails if a text tells a credential, or one has been logged so far; `what` names the text.
pub fn check(what: &str, text: &str) {
    CREDENTIALS.search(what, text.as_bytes());
    let leaks = CREDENTIALS.leaks();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

#[tokio::test]
async fn a_credential_in_the_log_would_be_heard() {
    listen();
    // A logger of its own, so that the lines of the other tests are not mixed with this one.
    let credentials = Arc::new(Credentials::of(&[SHOOT_TOKEN]));
    let heard = credentials.clone();
    let layer = every_level(move |line: Vec<u8>| heard.search("a line", &line));
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        tracing::trace!(target: "prober::shoot_client", header = format!("Bearer {SHOOT_TOKEN}"), "asked");
    });
    assert_eq!(credentials.leaks().len(), 1);
}
