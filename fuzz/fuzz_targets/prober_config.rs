//! The prober's config file.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| fuzz::config::check_prober(text));
