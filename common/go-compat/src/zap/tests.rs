use super::*;

#[test]
fn log_levels_are_words_in_any_case_or_a_verbosity() {
    for (text, expected) in [
        ("debug", Level::DEBUG),
        ("INFO", Level::Info),
        ("Error", Level::Error),
        ("panic", Level::Panic),
        ("1", Level::DEBUG),
        ("5", Level::Verbose(5)),
        ("4294967296", Level::Verbose(u32::MAX)),
    ] {
        assert_eq!(text.parse(), Ok(expected), "{text}");
    }
    for text in ["0", "-1", "warn", "", "1.5", "fatal", "9223372036854775808"] {
        assert!(text.parse::<Level>().is_err(), "{text}");
    }
}
