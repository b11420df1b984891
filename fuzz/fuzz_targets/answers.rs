//! Lists of leases and nodes as bytes, in protobuf and JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::hold::<readers::lists::Answer>(bytes));
