use super::args;
use go_compat::zap::{Encoder, StackLevel, TimeEncoding};

#[test]
fn zaps_flags_take_their_words() {
    let zap = args(&[
        "--zap-encoder=CONSOLE",
        "--zap-devel=true",
        "--zap-stacktrace-level=Panic",
    ])
    .expect("known")
    .zap;
    assert_eq!(
        (zap.encoder, zap.devel, zap.stacktrace_level),
        (Some(Encoder::Console), true, StackLevel::Panic)
    );
    for (text, expected) in [
        ("rfc3339", TimeEncoding::Rfc3339),
        ("rfc3339nano", TimeEncoding::Rfc3339Nano),
        ("iso8601", TimeEncoding::Iso8601),
        ("epoch", TimeEncoding::Epoch),
        ("millis", TimeEncoding::Millis),
        ("nanos", TimeEncoding::Nanos),
        ("ISO8601", TimeEncoding::Iso8601),
        ("RFC3339Nano", TimeEncoding::Rfc3339Nano),
    ] {
        assert_eq!(
            args(&[&format!("--zap-time-encoding={text}")]).map(|args| args.zap.time_encoding),
            Ok(expected)
        );
    }
    for word in [
        "--zap-log-level=warn",
        "--zap-time-encoding=nano",
        "--zap-encoder=xml",
        "--zap-stacktrace-level=debug",
        "--zap-devel=2",
    ] {
        assert!(args(&[word]).is_err(), "{word}");
    }
}

#[test]
fn development_implies_console_lines_unless_set_otherwise() {
    let encoder = |words: &[&str]| args(words).map(|args| args.zap.effective_encoder());
    assert_eq!(encoder(&[]), Ok(Encoder::Json));
    assert_eq!(encoder(&["--zap-devel"]), Ok(Encoder::Console));
    assert_eq!(
        encoder(&["--zap-devel", "--zap-encoder=json"]),
        Ok(Encoder::Json)
    );
}
