//! Lists of leases and nodes as bytes, in protobuf and JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|answer: fuzz::lists::Answer<'_>| fuzz::lists::check_answer(&answer));
