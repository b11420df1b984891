//! libFuzzer's bytes for one of the readers: the one that `FUZZ_TARGET` names. Without it, the
//! names.
#![no_main]

use std::process::exit;
use std::sync::LazyLock;

use readers::check_bytes;
use readers::lists::{AnyAnswer, DamagedList, LeaseLists, NodeLists};

type FuzzTarget = fn(&[u8]);

const TARGETS: [(&str, FuzzTarget); 7] = [
    ("answers", check_bytes::<AnyAnswer>),
    ("clusters", check_bytes::<readers::clusters::Raw>),
    ("durations", check_bytes::<readers::durations::DurationText>),
    ("kubeconfig", check_bytes::<readers::kubeconfig::Kubeconfig>),
    ("lists", |bytes| {
        check_bytes::<DamagedList<LeaseLists>>(bytes);
        check_bytes::<DamagedList<NodeLists>>(bytes);
    }),
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
    let named = std::env::var("FUZZ_TARGET").ok();
    let found = TARGETS
        .iter()
        .find(|(name, _)| Some(*name) == named.as_deref());
    found.map_or_else(
        || {
            TARGETS.iter().for_each(|(name, _)| println!("{name}"));
            exit(named.map_or(0, |_| 2))
        },
        |(_, target)| *target,
    )
});

libfuzzer_sys::fuzz_target!(init: LazyLock::force(&TARGET), |bytes: &[u8]| TARGET(bytes));
