//! libFuzzer's bytes for one of the readers: the one that `FUZZ_TARGET` names. Without it, the
//! names.
#![no_main]

use std::process::exit;
use std::sync::LazyLock;

use readers::hold;
use readers::lists::{Answer, Leases, List, Nodes};

type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 8] = [
    ("answers", hold::<Answer>),
    ("clusters", hold::<readers::clusters::Raw>),
    ("durations", hold::<readers::durations::Text>),
    ("flags", hold::<readers::flags::Words>),
    ("kubeconfig", hold::<readers::kubeconfig::Kubeconfig>),
    ("lists", |bytes| {
        hold::<List<Leases>>(bytes);
        hold::<List<Nodes>>(bytes);
    }),
    ("prober_config", hold::<readers::prober_config::Prober>),
    ("weeder_config", hold::<readers::weeder_config::Weeder>),
];

static TARGET: LazyLock<Target> = LazyLock::new(|| {
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
