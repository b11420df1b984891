//! Kubeconfigs by their fields.
#![no_main]

libfuzzer_sys::fuzz_target!(|parts: fuzz::kubeconfig::Parts| fuzz::kubeconfig::check_parts(&parts));
