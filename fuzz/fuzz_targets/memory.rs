//! Annotations that remember replicas.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::hold::<readers::memory::Resource>(bytes));
