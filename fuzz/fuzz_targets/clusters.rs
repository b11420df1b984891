//! Clusters and the shoots inside of them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::hold::<readers::clusters::Raw>(bytes));
