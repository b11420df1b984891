//! No credential is ever leaked: whatever agents write and serve is searched for pieces of the tokens
//! that they have.

use std::collections::HashSet;

use base64::{Engine, prelude::BASE64_STANDARD};
use parking_lot::Mutex;

/// What is searched for: pieces of this many bytes. Shorter ones occur by chance, and help nobody
/// to guess a token of hundreds; a shorter token is a placeholder of a test and no credential.
const PIECE: usize = 16;
/// How far apart the pieces of a token begin. So whatever shows `PIECE + STEP - 1` bytes of it in a
/// row is found.
const STEP: usize = 8;
/// Credentials, and where they were found although they must be nowhere.
#[derive(Default)]
pub struct Credentials {
    state: Mutex<CredentialState>,
}

#[derive(Default)]
struct CredentialState {
    pieces: HashSet<Vec<u8>>,
    leaks: Vec<String>,
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
