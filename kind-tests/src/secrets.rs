//! No credential is ever told: every token that the test bed makes is known here, and all that the programs under test write
//! and serve is searched for pieces of them, by every scenario.
//!
//! ```text
//! tokens -> hold --.
//! logs of the programs under test, their pages when they end, Events --search--> leaks --> every scenario fails
//! ```

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::page::{address, parse};

/// What is searched for: pieces of this many bytes. Shorter ones occur by chance, and help nobody to guess a token of hundreds.
const PIECE: usize = 16;
/// How far apart the pieces of a token begin. So whatever shows `PIECE + STEP - 1` bytes of it in a row is found.
const STEP: usize = 8;
/// What is shorter than this is a placeholder of a test and no credential.
const SHORTEST: usize = 12;
/// A program that answers at all answers sooner. One that is suspended does not.
const ANSWER: Duration = Duration::from_secs(1);
/// What a program serves.
const PAGES: [&str; 3] = ["/metrics", "/healthz", "/readyz"];

static ALL: LazyLock<Secrets> = LazyLock::new(Secrets::default);

/// Credentials, where they must not be, and where they were found nevertheless.
#[derive(Default)]
pub struct Secrets {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pieces: HashSet<[u8; PIECE]>,
    /// Those that are too short to be cut into pieces.
    short: BTreeSet<Vec<u8>>,
    /// Logs, and how far they have been searched.
    logs: BTreeMap<PathBuf, u64>,
    leaks: Vec<String>,
}

/// All credentials of this test process.
pub fn all() -> &'static Secrets {
    &ALL
}

impl Secrets {
    /// From now on this token, also in base64, may be told nowhere.
    pub fn hold(&self, token: &str) {
        let token = token.as_bytes();
        if token.len() < SHORTEST {
            return;
        }
        let mut state = self.state();
        state.insert(token);
        // In base64 a text looks different by where among three bytes it begins; the ends depend on what stands beside it.
        for shift in 0..3 {
            let shifted: Vec<u8> = [&[0; 3][..shift], token].concat();
            let encoded = STANDARD.encode(shifted);
            state.insert(&encoded.as_bytes()[4..encoded.len() - 4]);
        }
    }

    /// From now on what is written to this log is searched.
    pub fn watch(&self, log: &Path) {
        self.state().logs.entry(log.into()).or_default();
    }

    /// Searches a text; `what` names it.
    pub fn search(&self, what: &str, text: &[u8]) {
        let mut state = self.state();
        if let Some(at) = state.find(text) {
            let line = text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
            let before = String::from_utf8_lossy(&text[line..at]).into_owned();
            state.leaks.push(format!("{what} tells a credential after: {before}"));
        }
    }

    /// Searches what the program that writes this log serves now.
    pub fn search_pages(&self, log: &Path) {
        if self.state().holds_nothing() {
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
        let logs = self.state().logs.clone();
        for (log, from) in logs {
            // A piece may have been cut by where the last search ended.
            let from = from.saturating_sub((PIECE + STEP) as u64);
            let mut text = Vec::new();
            let Ok(mut file) = std::fs::File::open(&log) else { continue };
            file.seek(SeekFrom::Start(from))?;
            file.read_to_end(&mut text)?;
            self.search(&log.display().to_string(), &text);
            self.state().logs.insert(log, from + text.len() as u64);
        }
        let leaks = self.state().leaks.clone();
        ensure!(leaks.is_empty(), "{leaks:#?}");
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn holds_nothing(&self) -> bool {
        self.pieces.is_empty() && self.short.is_empty()
    }

    fn insert(&mut self, token: &[u8]) {
        if token.len() < PIECE + STEP {
            self.short.insert(token.into());
            return;
        }
        let pieces = token.windows(PIECE).step_by(STEP).filter_map(|piece| <[u8; PIECE]>::try_from(piece).ok());
        self.pieces.extend(pieces);
    }

    /// Where the first credential begins.
    fn find(&self, text: &[u8]) -> Option<usize> {
        let is_piece = |window: &[u8]| <&[u8; PIECE]>::try_from(window).is_ok_and(|piece| self.pieces.contains(piece));
        let piece = text.windows(PIECE).position(is_piece);
        let whole = |token: &Vec<u8>| text.windows(token.len()).position(|window| window == token);
        self.short.iter().filter_map(whole).chain(piece).min()
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

    fn told(text: &str) -> bool {
        let secrets = Secrets::default();
        secrets.hold(TOKEN);
        secrets.hold("fifteen-letters");
        secrets.search("the text", text.as_bytes());
        secrets.untold().is_err()
    }

    #[test]
    fn a_token_is_found_whole_in_part_and_in_base64() {
        assert!(told(&format!("Authorization: Bearer {TOKEN}")));
        for begin in 0..TOKEN.len() - 23 {
            assert!(told(&TOKEN[begin..begin + 23]), "{begin}");
        }
        assert!(told("a short one: fifteen-letters."));
        for prefix in ["", "x", "xy"] {
            assert!(told(&STANDARD.encode(format!("{prefix}users:\n- token: {TOKEN}\n"))));
        }
    }

    #[test]
    fn what_is_no_token_is_not_found() {
        assert!(!told("level=info msg=\"probe complete\" fifteen-letter"));
        assert!(!told(&STANDARD.encode("users:\n- token: another one, which nobody holds here\n")));
    }

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
