//! Label selectors.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::hold::<readers::selectors::Selectors>(bytes));
