//! No credential is ever told: every token that the test bed makes is known here, and all that the programs under test write
//! and serve is searched for pieces of them, by every scenario.
//!
//! ```text
//! tokens -> hold --.
//! logs of the programs under test, their pages when they end, Events --search--> leaks --> every scenario fails
//! ```

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::api::Credentials;
use anyhow::{Context, Result, ensure};

use crate::page::{address, parse};

/// A program that answers at all answers sooner. One that is suspended does not.
const ANSWER: Duration = Duration::from_secs(1);
/// What a program serves.
const PAGES: [&str; 3] = ["/metrics", "/healthz", "/readyz"];

static ALL: LazyLock<Secrets> = LazyLock::new(Secrets::default);

/// Credentials, and where they must not be.
#[derive(Default)]
pub struct Secrets {
    credentials: Credentials,
    /// Logs, and how far they have been searched.
    logs: Mutex<BTreeMap<PathBuf, u64>>,
}

/// All credentials of this test process.
pub fn all() -> &'static Secrets {
    &ALL
}

impl Secrets {
    /// From now on this token, also in base64, may be told nowhere.
    pub fn hold(&self, token: &str) {
        self.credentials.hold(token);
    }

    /// From now on what is written to this log is searched.
    pub fn watch(&self, log: &Path) {
        self.logs().entry(log.into()).or_default();
    }

    /// Searches a text; `what` names it.
    pub fn search(&self, what: &str, text: &[u8]) {
        self.credentials.search(what, text);
    }

    /// Searches what the program that writes this log serves now.
    pub fn search_pages(&self, log: &Path) {
        if self.credentials.is_empty() {
            return;
        }
        for path in PAGES {
            // One that serves nothing, or stands still, tells nothing either.
            if let Ok((_, body)) = get(log, path) {
                self.search(&format!("{path} of {}", log.display()), body.as_bytes());
            }
        }
    }

    /// Fails if any credential has been told.
    ///
    /// # Errors
    /// With each place where one was found.
    pub fn untold(&self) -> Result<()> {
        let logs = self.logs().clone();
        for (log, from) in logs {
            let from = from.saturating_sub(Credentials::OVERLAP as u64);
            let mut text = Vec::new();
            let Ok(mut file) = std::fs::File::open(&log) else { continue };
            file.seek(SeekFrom::Start(from))?;
            file.read_to_end(&mut text)?;
            self.search(&log.display().to_string(), &text);
            self.logs().insert(log, from + text.len() as u64);
        }
        let leaks = self.credentials.leaks();
        ensure!(leaks.is_empty(), "{leaks:#?}");
        Ok(())
    }

    fn logs(&self) -> MutexGuard<'_, BTreeMap<PathBuf, u64>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A page of the program that writes this log. Blocks for a moment: it is also called where a program is dropped.
fn get(log: &Path, path: &str) -> Result<(u16, String)> {
    let address = address(log, path)?;
    let mut stream = TcpStream::connect_timeout(&address.parse()?, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("no answer")?;
    parse(&answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "eyJhbGciOiJub25lIn0.a-token-that-was-made-for-this-test-alone.c2lnbmF0dXJl";

    #[test]
    fn a_log_is_searched_as_it_grows_and_no_piece_is_lost_between_two_searches() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let secrets = Secrets::default();
        secrets.hold(TOKEN);
        secrets.watch(&log);
        std::fs::write(&log, format!("fine\n{}", &TOKEN[..12])).expect("written");
        secrets.untold().expect("nothing yet");
        let mut file = std::fs::File::options().append(true).open(&log).expect("opened");
        file.write_all(&TOKEN.as_bytes()[12..23]).expect("written");
        let error = secrets.untold().expect_err("it is there").to_string();
        assert!(error.contains("fine") || error.contains("log tells a credential"), "{error}");
    }
}
