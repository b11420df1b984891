//! An API server's words on a refusal, in one line of bounded length.

use std::time::Duration;

use kube::core::Status;

use crate::text::shortened;

/// More is cut off: an Event's message has room for 1024 bytes (the API server's limit), and other
/// things stand there, too.
const SHOWN: usize = 600;

/// The words of an API server, or of a webhook that it asked. They are meant for people.
pub fn message(status: &Status) -> String {
    let words = status
        .message
        .split(|letter: char| letter.is_whitespace() || letter.is_control());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        let (code, reason) = (status.code, &status.reason);
        return format!("{code} {reason}").trim_end().to_owned();
    }
    shortened(words.join(" "), SHOWN)
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
        super::message(&Status::failure(message, "Forbidden").with_code(403))
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
