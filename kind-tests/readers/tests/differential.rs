//! Our readers against Go's, input by input, and what must hold of each reading alone.

use anyhow::Result;
use readers::{
    campaign, clusters, durations, kubeconfig, lists, memory, prober_config, weeder_config,
};

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
    durations_are_read_and_written_as_go_does: 10_000 of durations::DurationText,
    remembered_replicas_are_what_atoi_reads_and_ignore_scaling_is_true_where_parse_bool_says_so: 8_000 of memory::Annotations,
    prober_files_mean_what_they_mean_to_the_reference_and_of_a_name_in_several_cases_the_same_counts: 2_300 of prober_config::ProberFile,
    weeder_files_mean_what_they_mean_to_the_reference_and_requests_ask_for_no_fewer_pods: 2_000 of weeder_config::WeederFile,
    lists_of_leases_are_read_as_go_writes_them_and_damaged_ones_as_go_reads_them_or_refused: 1_000 of lists::DamagedList<lists::LeaseLists>,
    lists_of_nodes_are_read_as_go_writes_them_and_damaged_ones_as_go_reads_them_or_refused: 1_000 of lists::DamagedList<lists::NodeLists>,
    no_answer_holds_more_than_its_bytes_can_say: 3_000 of lists::AnyAnswer,
    shoots_are_understood_as_gardeners_decoder_understands_them: 3_000 of clusters::Raw,
    a_kubeconfig_neither_runs_nor_reads_anything_here: 3_000 of kubeconfig::Kubeconfig,
}
