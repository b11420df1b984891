//! Clusters and the shoots inside of them.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fuzz::clusters::check(text));
