//! libFuzzer's bytes for one of the readers: the one that `FUZZ_TARGET` names. Without it, the
//! names.
#![no_main]

use std::process::exit;
use std::sync::LazyLock;

use readers::check_bytes;
use readers::lists::{AnyAnswer, DamagedList};

type FuzzTarget = fn(&[u8]);

const TARGETS: [(&str, FuzzTarget); 7] = [
    ("answers", check_bytes::<AnyAnswer>),
    ("clusters", check_bytes::<readers::clusters::Raw>),
    ("durations", check_bytes::<readers::durations::DurationText>),
    ("kubeconfig", check_bytes::<readers::kubeconfig::Kubeconfig>),
    ("lists", check_bytes::<DamagedList>),
    (
        "prober_config",
        check_bytes::<readers::prober_config::ProberFile>,
    ),
    (
        "weeder_config",
        check_bytes::<readers::weeder_config::WeederFile>,
    ),
];

static TARGET: LazyLock<FuzzTarget> = LazyLock::new(|| {
    let named = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let Some((_, target)) = TARGETS.iter().find(|(name, _)| *name == named) else {
        TARGETS.iter().for_each(|(name, _)| println!("{name}"));
        exit(if named.is_empty() { 0 } else { 2 })
    };
    *target
});

libfuzzer_sys::fuzz_target!(init: LazyLock::force(&TARGET), |bytes: &[u8]| TARGET(bytes));
