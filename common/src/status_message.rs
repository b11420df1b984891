//! An API server's words on a refusal, in one line of bounded length.

use std::time::Duration;

use kube::core::Status;

/// More is cut off: an Event's message has room for 1024 bytes (the API server's limit), and other
/// things stand there, too.
const SHOWN: usize = 600;

/// The words of an API server, or of a webhook that it asked. They are meant for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StatusMessage(String);

impl StatusMessage {
    pub fn of(status: &Status) -> Self {
        let words = status
            .message
            .split(|letter: char| letter.is_whitespace() || letter.is_control());
        let mut line = words
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        if line.len() > SHOWN {
            line.truncate(line.floor_char_boundary(SHOWN));
            line.push_str("...");
        }
        Self(if line.is_empty() {
            format!("{} {}", status.code, status.reason)
                .trim_end()
                .to_owned()
        } else {
            line
        })
    }
}

/// The wait that an API server asks for.
pub fn retry_after(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &str) -> String {
        StatusMessage::of(&Status::failure(message, "Forbidden").with_code(403)).to_string()
    }

    #[test]
    fn it_is_one_line_and_steers_no_terminal() {
        assert_eq!(
            said("denied:\n\tno \u{1b}[31mscaling\r\n on Fridays "),
            "denied: no [31mscaling on Fridays"
        );
        assert_eq!(said(" \n"), "403 Forbidden");
    }

    #[test]
    fn it_ends_somewhere_and_between_letters() {
        let long = said(&"ä".repeat(SHOWN));
        assert_eq!(long, format!("{}...", "ä".repeat(SHOWN / 2)));
        assert_eq!(said(&"a".repeat(SHOWN)).len(), SHOWN);
    }
}
