//! Annotations that remember replicas.
#![no_main]

libfuzzer_sys::fuzz_target!(|resource: fuzz::memory::Resource| fuzz::memory::check(&resource));
