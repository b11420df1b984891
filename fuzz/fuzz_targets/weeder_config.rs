//! The weeder's config file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::hold::<readers::weeder_config::Weeder>(bytes));
