//! Command lines, with the flags of zap.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::hold::<readers::flags::Words>(bytes));
