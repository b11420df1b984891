//! The prober's config file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::hold::<readers::prober_config::Prober>(bytes));
