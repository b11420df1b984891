//! Where the play is shown: a terminal, redrawn in place, or plain lines.

use std::io::{IsTerminal, Write};

use crate::story::Story;
use crate::view::{self, Look};

/// Shown if the terminal does not tell its size.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

/// The audience's side. Dropping it restores the terminal.
pub struct Screen {
    /// What the terminal can do, if the view is live: redrawn in place, on the alternate screen.
    live: Option<Look>,
    /// How many events were told as lines.
    told: usize,
}

impl Screen {
    /// A live view if standard output is a terminal that can move its cursor.
    pub fn open() -> Self {
        let capable = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        if !std::io::stdout().is_terminal() || !capable {
            return Self { live: None, told: 0 };
        }
        // https://no-color.org: set and not empty.
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        let unicode = locale.is_some_and(|locale| locale.to_lowercase().replace('-', "").contains("utf8"));
        // Alternate screen, cursor hidden.
        say("\x1b[?1049h\x1b[?25l\x1b[2J");
        Self { live: Some(Look { width: 0, height: 0, colour, unicode }), told: 0 }
    }

    /// Shows the play as far as it has gone.
    pub fn show(&mut self, story: &Story) {
        let Some(look) = self.live else {
            for event in &story.record.events[self.told..] {
                say(&format!("{:>6.1}s  {}\n", event.at, event.text));
            }
            self.told = story.record.events.len();
            return;
        };
        let (width, height) = size();
        let lines = view::render(&story.record, &story.scene, Look { width, height, ..look });
        // Each line clears its own rest; nothing is cleared before, so nothing flickers.
        say(&format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n")));
    }

    /// Ends the view. What a live view has shown is gone then, so its events are told as lines.
    pub fn close(mut self, story: &Story) {
        self.restore();
        self.show(story);
    }

    fn restore(&mut self) {
        if self.live.take().is_some() {
            say("\x1b[?25h\x1b[?1049l");
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.restore();
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
