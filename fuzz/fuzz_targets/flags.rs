//! Command lines, with the flags of zap.
#![no_main]

libfuzzer_sys::fuzz_target!(|words: Vec<fuzz::flags::Word>| fuzz::flags::check(&words));
