//! No credential is ever leaked: every token that the testbed makes is known here, and the logs of
//! the programs under test are searched for pieces of them, by every scenario.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::{Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use parking_lot::Mutex;

/// What is searched for: pieces of this many bytes. Shorter ones occur by chance, and help nobody
/// to guess a token of hundreds; a shorter token is a placeholder of a test and no credential.
const PIECE: usize = 16;
/// How far apart the pieces of a token begin. So whatever shows `PIECE + STEP - 1` bytes of it in a
/// row is found.
const STEP: usize = 8;

static ALL: LazyLock<Credentials> = LazyLock::new(Credentials::default);

/// All credentials of this test process.
pub fn all() -> &'static Credentials {
    &ALL
}

/// Credentials, and where they were found although they must be nowhere.
#[derive(Default)]
pub struct Credentials {
    state: Mutex<CredentialState>,
}

#[derive(Default)]
struct CredentialState {
    pieces: HashSet<Vec<u8>>,
    leaks: Vec<String>,
    /// Logs that are searched, and how far they have been.
    logs: BTreeMap<PathBuf, usize>,
}

impl Credentials {
    /// These tokens may stand nowhere.
    pub fn of(tokens: &[&str]) -> Self {
        let credentials = Self::default();
        tokens.iter().for_each(|token| credentials.register(token));
        credentials
    }

    /// From now on this token, also in base64, may stand nowhere.
    pub fn register(&self, token: &str) {
        let mut state = self.state.lock();
        let mut insert = |token: &[u8]| {
            let pieces = token.windows(PIECE).step_by(STEP);
            state.pieces.extend(pieces.map(Vec::from));
        };
        insert(token.as_bytes());
        // In base64 a text is different by where among three bytes it begins; the ends depend on
        // what stands beside it.
        for shift in 0..3 {
            let shifted = [&[0; 3][..shift], token.as_bytes()].concat();
            let encoded = BASE64_STANDARD.encode(shifted);
            insert(
                encoded
                    .as_bytes()
                    .get(4..encoded.len().saturating_sub(4))
                    .unwrap_or_default(),
            );
        }
    }

    /// Searches a text; `what` names it.
    pub fn search(&self, what: &str, text: &[u8]) {
        let mut state = self.state.lock();
        let mut windows = text.windows(PIECE);
        if let Some(at) = windows.position(|window| state.pieces.contains(window)) {
            let before = String::from_utf8_lossy(&text[..at]);
            let before = before.lines().last().unwrap_or_default();
            let leak = format!("{what} leaks a credential after: {before}");
            state.leaks.push(leak);
        }
    }

    /// Each place where one was found.
    pub fn leaks(&self) -> Vec<String> {
        self.state.lock().leaks.clone()
    }

    /// From now on what is written to this log is searched.
    pub fn watch(&self, log: &Path) {
        self.state.lock().logs.entry(log.into()).or_default();
    }

    /// Fails if any credential has leaked.
    ///
    /// # Errors
    /// With each place where one was found.
    pub fn no_leaks(&self) -> Result<()> {
        let logs = self.state.lock().logs.clone();
        for (log, searched) in logs {
            let text = std::fs::read(&log).unwrap_or_default();
            // A piece may be cut by where the last search ended.
            let from = searched.saturating_sub(PIECE);
            self.search(&log.display().to_string(), &text[from.min(text.len())..]);
            self.state.lock().logs.insert(log, text.len());
        }
        let leaks = self.leaks();
        ensure!(leaks.is_empty(), "{leaks:#?}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str =
        "eyJhbGciOiJub25lIn0.a-token-that-was-made-for-this-test-alone.c2lnbmF0dXJl";

    #[test]
    fn pieces_of_a_token_are_found() {
        let leaks = |text: &str| {
            let secrets = Credentials::of(&[TOKEN]);
            secrets.search("the text", text.as_bytes());
            secrets.leaks().len()
        };
        for begin in 0..TOKEN.len() - 23 {
            assert_eq!(leaks(&TOKEN[begin..begin + 23]), 1, "{begin}");
        }
        for prefix in ["", "x", "xy"] {
            let encoded = BASE64_STANDARD.encode(format!("{prefix}users:\n- token: {TOKEN}\n"));
            assert_eq!(leaks(&encoded), 1, "in base64");
        }
        assert_eq!(leaks("nothing of the kind"), 0);
    }
}
