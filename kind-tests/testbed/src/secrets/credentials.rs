//! No credential is ever leaked: whatever the programs under test say is searched for pieces of
//! those in use.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::OnceLock;

use base64::{Engine, prelude::BASE64_STANDARD};
use parking_lot::{Mutex, MutexGuard};
use tracing_subscriber::{Layer, Registry, layer::SubscriberExt, util::SubscriberInitExt};

/// What is searched for: pieces of this many bytes. Shorter ones occur by chance, and help nobody
/// to guess a token of hundreds.
const PIECE: usize = 16;
/// How far apart the pieces of a token begin. So whatever shows `PIECE + STEP - 1` bytes of it in a
/// row is found.
const STEP: usize = 8;
/// What is shorter than this is a placeholder of a test and no credential.
const SHORTEST: usize = 12;

/// Credentials, and where they were found although they must be nowhere.
#[derive(Default)]
pub struct Credentials {
    state: Mutex<CredentialState>,
    listening: OnceLock<()>,
}

#[derive(Default)]
pub(crate) struct CredentialState {
    pieces: HashSet<[u8; PIECE]>,
    /// Those that are too short to be cut into pieces.
    short: BTreeSet<Vec<u8>>,
    leaks: Vec<String>,
    /// Logs that are searched, and how far they have been.
    pub logs: BTreeMap<PathBuf, u64>,
}

impl Credentials {
    /// So many bytes of a text that has grown are searched again, since a piece may be cut by where
    /// the last search ended.
    pub const OVERLAP: usize = PIECE + STEP;

    /// These tokens may stand nowhere.
    pub fn of(tokens: &[&str]) -> Self {
        let credentials = Self::default();
        tokens.iter().for_each(|token| credentials.register(token));
        credentials
    }

    /// From now on this token, also in base64, may stand nowhere.
    pub fn register(&self, token: &str) {
        let token = token.as_bytes();
        if token.len() < SHORTEST {
            return;
        }
        let mut state = self.state();
        state.insert(token);
        // In base64 a text is different by where among three bytes it begins; the ends depend on
        // what stands beside it.
        for shift in 0..3 {
            let shifted: Vec<u8> = [&[0; 3][..shift], token].concat();
            let encoded = BASE64_STANDARD.encode(shifted);
            state.insert(&encoded.as_bytes()[4..encoded.len() - 4]);
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        let state = self.state();
        state.pieces.is_empty() && state.short.is_empty()
    }

    /// Searches a text; `what` names it.
    pub fn search(&self, what: &str, text: &[u8]) {
        let mut state = self.state();
        if let Some(at) = state.find(text) {
            let line = text[..at]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |newline| newline + 1);
            let before = String::from_utf8_lossy(&text[line..at]).into_owned();
            state
                .leaks
                .push(format!("{what} leaks a credential after: {before}"));
        }
    }

    /// Searches whatever this process logs from now on. `layer` makes the layer that hands each
    /// line over; once, however often this is called.
    pub fn listen<L>(&'static self, layer: impl FnOnce(Box<dyn Fn(Vec<u8>) + Send + Sync>) -> L)
    where
        L: Layer<Registry> + Send + Sync,
    {
        self.listening.get_or_init(|| {
            let search = move |line: Vec<u8>| self.search("a line of the log", &line);
            tracing_subscriber::registry()
                .with(layer(Box::new(search)))
                .init();
        });
    }

    /// Each place where one was found.
    pub fn leaks(&self) -> Vec<String> {
        self.state().leaks.clone()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, CredentialState> {
        self.state.lock()
    }
}

impl CredentialState {
    fn insert(&mut self, token: &[u8]) {
        if token.len() < PIECE + STEP {
            self.short.insert(token.into());
            return;
        }
        let pieces = token
            .windows(PIECE)
            .step_by(STEP)
            .filter_map(|piece| <[u8; PIECE]>::try_from(piece).ok());
        self.pieces.extend(pieces);
    }

    /// Where the first credential begins.
    fn find(&self, text: &[u8]) -> Option<usize> {
        let is_piece = |window: &[u8]| {
            <&[u8; PIECE]>::try_from(window).is_ok_and(|piece| self.pieces.contains(piece))
        };
        let piece = text.windows(PIECE).position(is_piece);
        let whole = |token: &Vec<u8>| text.windows(token.len()).position(|window| window == token);
        self.short.iter().filter_map(whole).chain(piece).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str =
        "eyJhbGciOiJub25lIn0.a-token-that-was-made-for-this-test-alone.c2lnbmF0dXJl";

    fn leaks(text: &str) -> bool {
        let credentials = Credentials::of(&[TOKEN, "fifteen-letters"]);
        credentials.search("the text", text.as_bytes());
        !credentials.leaks().is_empty()
    }

    #[test]
    fn a_token_is_found_whole_in_part_and_in_base64() {
        assert!(leaks(&format!("Authorization: Bearer {TOKEN}")));
        for begin in 0..TOKEN.len() - 23 {
            assert!(leaks(&TOKEN[begin..begin + 23]), "{begin}");
        }
        assert!(leaks("a short one: fifteen-letters."));
        for prefix in ["", "x", "xy"] {
            assert!(leaks(
                &BASE64_STANDARD.encode(format!("{prefix}users:\n- token: {TOKEN}\n"))
            ));
        }
    }
}
