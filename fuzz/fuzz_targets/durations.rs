//! Durations in Go's spelling.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::hold::<readers::durations::Text>(bytes));
