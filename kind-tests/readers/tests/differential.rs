//! Our readers against Go's, input by input, and what must hold of each reading alone.

use anyhow::Result;
use readers::{campaign, clusters, durations, kubeconfig, lists, prober_config, weeder_config};

/// Tests of this name: so many inputs of a kind are checked, and compared with Go.
macro_rules! campaigns {
    ($($name:ident: $cases:literal of $input:ty,)*) => {
        $(#[test]
        fn $name() -> Result<()> {
            campaign::<$input>($cases)
        })*
    };
}

campaigns! {
    durations_are_those_of_go: 10_000 of durations::DurationText,
    prober_files_are_read_as_they_are_written_out: 2_300 of prober_config::ProberFile,
    selectors_select_what_they_do_to_an_api_server: 2_000 of weeder_config::WeederFile,
    lists_are_read_as_by_go: 2_000 of lists::DamagedList,
    answers_hold_what_bytes_can_say: 3_000 of lists::AnyAnswer,
    shoots_are_read_as_by_gardener: 3_000 of clusters::Raw,
    kubeconfigs_act_on_nothing_here: 3_000 of kubeconfig::Kubeconfig,
}
