//! Kubeconfigs out of Secrets.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::hold::<readers::kubeconfig::Kubeconfig>(bytes));
