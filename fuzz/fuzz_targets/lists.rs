//! Lists of leases and nodes by what they hold, whole and damaged.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    readers::hold::<readers::lists::List<readers::lists::Leases>>(bytes);
    readers::hold::<readers::lists::List<readers::lists::Nodes>>(bytes);
});
