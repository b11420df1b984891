//! No credential is ever leaked: every token that the testbed makes is known here, and all that the
//! programs under test write and serve is searched for pieces of them, by every scenario.
//!
//! ```text
//! tokens -> register --.
//! logs of the programs under test, their pages when they end, Events --search--> leaks --> every scenario fails
//! ```

mod credentials;

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Result, ensure};

pub use credentials::Credentials;

use crate::page::{address, get_blocking};

/// A program that answers at all answers sooner. One that is suspended does not.
const ANSWER: Duration = Duration::from_secs(1);
/// What a program serves.
const PAGES: [&str; 3] = ["/metrics", "/healthz", "/readyz"];

static ALL: LazyLock<Credentials> = LazyLock::new(Credentials::default);

/// All credentials of this test process.
pub fn all() -> &'static Credentials {
    &ALL
}

impl Credentials {
    /// From now on what is written to this log is searched.
    pub fn watch(&self, log: &Path) {
        self.state().logs.entry(log.into()).or_default();
    }

    /// Searches what the program that writes this log serves now.
    pub fn search_pages(&self, log: &Path) {
        if self.is_empty() {
            return;
        }
        for path in PAGES {
            // One that serves nothing, or stands still, tells nothing either.
            if let Ok((_, body)) =
                address(log, path).and_then(|address| get_blocking(&address, path, ANSWER))
            {
                self.search(&format!("{path} of {}", log.display()), body.as_bytes());
            }
        }
    }

    /// Fails if any credential has leaked.
    ///
    /// # Errors
    /// With each place where one was found.
    pub fn no_leaks(&self) -> Result<()> {
        let logs = self.state().logs.clone();
        for (log, from) in logs {
            let from = from.saturating_sub(Self::OVERLAP as u64);
            let mut text = Vec::new();
            let Ok(mut file) = std::fs::File::open(&log) else {
                continue;
            };
            file.seek(SeekFrom::Start(from))?;
            file.read_to_end(&mut text)?;
            self.search(&log.display().to_string(), &text);
            self.state().logs.insert(log, from + text.len() as u64);
        }
        let leaks = self.leaks();
        ensure!(leaks.is_empty(), "{leaks:#?}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TOKEN: &str =
        "eyJhbGciOiJub25lIn0.a-token-that-was-made-for-this-test-alone.c2lnbmF0dXJl";

    #[test]
    fn a_log_is_searched_as_it_grows_and_no_piece_is_lost_between_two_searches() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let secrets = Credentials::of(&[TOKEN]);
        secrets.watch(&log);
        std::fs::write(&log, format!("fine\n{}", &TOKEN[..12])).expect("written");
        secrets.no_leaks().expect("nothing yet");
        let mut file = std::fs::File::options()
            .append(true)
            .open(&log)
            .expect("opened");
        file.write_all(&TOKEN.as_bytes()[12..23]).expect("written");
        let error = secrets.no_leaks().expect_err("it is there").to_string();
        assert!(
            error.contains("fine") || error.contains("log leaks a credential"),
            "{error}"
        );
    }
}
