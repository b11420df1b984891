//! Kubeconfigs as bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::kubeconfig::check_bytes(bytes));
