//! Lists of leases and nodes by what they hold, in protobuf and JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|lists: fuzz::lists::Lists| fuzz::lists::check_lists(&lists));
