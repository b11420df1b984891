//! libFuzzer's bytes for one of the readers: the one that `FUZZ_TARGET` names. Without it, the
//! names.
#![no_main]

use std::process::exit;
use std::sync::LazyLock;

use fuzz::{Check, READERS};

static READER: LazyLock<Check> = LazyLock::new(|| {
    let named = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let Some((_, check)) = READERS.iter().find(|(name, _)| *name == named) else {
        READERS.iter().for_each(|(name, _)| println!("{name}"));
        exit(if named.is_empty() { 0 } else { 2 })
    };
    *check
});

libfuzzer_sys::fuzz_target!(init: LazyLock::force(&READER), |bytes: &[u8]| {
    let checked = READER(bytes);
    assert!(checked.is_ok(), "{checked:?}");
});
