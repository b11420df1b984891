//! Label selectors.
#![no_main]

libfuzzer_sys::fuzz_target!(|case: fuzz::selectors::Case| fuzz::selectors::check(&case));
