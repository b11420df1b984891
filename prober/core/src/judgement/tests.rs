use std::sync::Arc;

use super::*;
use crate::tests::scene::{GRACE, lease, times};
use crate::verdict::NodeTraits;

/// Node, age and state of the leases that count, as found 100 s after the start. The leases
/// of the first two of three nodes are renewed, and the last one's was 90 s before.
fn counted(nodes: Option<[&str; 3]>) -> Vec<String> {
    let conditions = PoolConditions::default();
    let names = ["n0", "n1", "n2"];
    let mut judge = Judge::default();
    for (now, renewed) in [(70.0, 65.0), (90.0, 85.0), (100.0, 95.0)] {
        let leases = names.into_iter().zip([renewed, renewed, 10.0]);
        judge.observe(
            times(now),
            leases.map(|(name, renewed)| lease(name, renewed)),
            GRACE,
        );
    }
    judge.set_machines(Arc::new(names.into_iter().map(Some).collect()));
    if let Some(words) = nodes {
        let nodes = names.into_iter().zip(words);
        let node = |(name, words)| NodeRecord::new(name, NodeTraits::of(words));
        judge.set_nodes(nodes.map(node).collect());
    }
    let finding = judge.judge(&Rules {
        grace: GRACE,
        fraction: 0.6,
        pool_conditions: &conditions,
        renewed_after: None,
        down_since: None,
        nodes_good_for: TimeDelta::seconds(30),
    });
    let counted = judge.counted_leases(finding.criteria, &conditions);
    let shown = |lease: &CountedLease<'_>| {
        let age = lease.age.num_seconds();
        format!("{} {age} s {:?}", lease.node, lease.state)
    };
    counted.iter().map(shown).collect()
}

#[test]
fn leases_of_candidates_are_counted() {
    let [first, second, last] = ["n0 5 s Valid", "n1 5 s Valid", "n2 90 s Expired"];
    assert_eq!(counted(Some([""; 3])), [first, second, last]);
    assert_eq!(counted(Some(["", "foreign", ""])), [first, last]);
    assert!(counted(None).is_empty(), "while the nodes do not matter");
}

#[test]
fn name_of_a_node_is_kept_once() {
    let name: Arc<str> = "node-0".into();
    let mut judge = Judge::default();
    judge.observe(times(0.0), [lease("node-0", -1.0)], GRACE);
    let machines = [Some(Arc::clone(&name))];
    judge.set_machines(Arc::new(machines.into_iter().collect()));
    judge.set_nodes(vec![NodeRecord::new("node-0", NodeTraits::default())]);
    // Here, and for the Machine, the lease and the node.
    assert_eq!(Arc::strong_count(&name), 4);
}
