//! Durations in Go's spelling.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fuzz::durations::check(text));
