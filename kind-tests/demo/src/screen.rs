//! Where the play is shown: a terminal, redrawn in place, or plain lines.

use std::io::{IsTerminal, Write};

use crate::{scene::Scene, view};

/// Shown if the terminal does not tell its size.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

/// The audience's side. Dropping it restores the terminal.
pub enum Screen {
    /// A live view on the terminal's alternate screen.
    Live { colour: bool, unicode: bool },
    /// One line per event; how many were told already.
    Plain { told: usize },
}

impl Screen {
    /// A live view if standard output is a terminal that can move its cursor.
    pub fn open() -> Self {
        let capable = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        if !std::io::stdout().is_terminal() || !capable {
            return Self::Plain { told: 0 };
        }
        // https://no-color.org: set and not empty.
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        let unicode = locale.is_some_and(|locale| locale.to_lowercase().replace('-', "").contains("utf8"));
        // Alternate screen, cursor hidden.
        say("\x1b[?1049h\x1b[?25l\x1b[2J");
        Self::Live { colour, unicode }
    }

    /// Shows a moment.
    pub fn show(&mut self, scene: &Scene) {
        match self {
            Self::Live { colour, unicode } => {
                let (width, height) = size();
                let look = view::Look { width, height, colour: *colour, unicode: *unicode };
                let lines = view::render(scene, look);
                // Each line clears its own rest; nothing is cleared before, so nothing flickers.
                say(&format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n")));
            }
            Self::Plain { told } => {
                for (at, text) in &scene.events[*told..] {
                    say(&format!("{at:>6.1}s  {text}\n"));
                }
                *told = scene.events.len();
            }
        }
    }

    /// Ends the view. What a live view has shown is gone then, so its events are told as lines.
    pub fn close(self, scene: Option<&Scene>) {
        let mut plain = match self {
            Self::Plain { told } => Self::Plain { told },
            Self::Live { .. } => Self::Plain { told: 0 },
        };
        drop(self);
        if let Some(scene) = scene {
            plain.show(scene);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if matches!(self, Self::Live { .. }) {
            say("\x1b[?25h\x1b[?1049l");
        }
    }
}

/// Writes text out; a reader that has gone is no reason to fail.
pub fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => DEFAULT_SIZE,
    }
}
