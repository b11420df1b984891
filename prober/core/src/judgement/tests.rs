use std::sync::Arc;

use super::*;
use crate::tests::scene::{GRACE, lease, times};
use crate::verdict::NodeTraits;

fn node(at: usize, traits: NodeTraits) -> NodeRecord {
    NodeRecord::new(&format!("node-{at}"), traits)
}

fn in_zone(at: usize) -> NodeRecord {
    let traits = NodeTraits {
        zone: Some("zone".to_owned()),
        pool: Some("pool".to_owned()),
        ..NodeTraits::default()
    };
    node(at, traits)
}

/// Node, zone, age and state of the leases that count, as found 100 s after the start. The leases
/// of the first two of three nodes are renewed, and the last one's was 90 s before.
fn counted(nodes: Option<[NodeRecord; 3]>) -> Vec<(String, Option<String>, i64, LeaseState)> {
    let conditions = PoolConditions::default();
    let names: Vec<String> = (0..3).map(|number| format!("node-{number}")).collect();
    let mut judge = Judge::default();
    for (now, renewed) in [(70.0, 65.0), (90.0, 85.0), (100.0, 95.0)] {
        let leases = names.iter().zip([renewed, renewed, 10.0]);
        judge.observe(
            times(now),
            leases.map(|(name, renewed)| lease(name, renewed)),
            GRACE,
        );
    }
    judge.set_machines(Arc::new(
        names.iter().map(|name| Some(name.as_str())).collect(),
    ));
    if let Some(nodes) = nodes {
        judge.set_nodes(nodes.into());
    }
    let finding = judge.judge(&Rules {
        grace: GRACE,
        fraction: 0.6,
        pool_conditions: &conditions,
        renewed_after: None,
    });
    let counted = judge.counted_leases(finding.criteria, &conditions);
    counted
        .iter()
        .map(|lease| {
            let zone = lease.failure_zone.map(str::to_owned);
            (
                lease.node.to_owned(),
                zone,
                lease.age.num_seconds(),
                lease.state,
            )
        })
        .collect()
}

#[test]
fn counted_leases_name_their_zones() {
    let in_pool = NodeTraits {
        pool: Some("pool".to_owned()),
        ..NodeTraits::default()
    };
    let nodes = [in_zone(0), node(1, in_pool), node(2, NodeTraits::default())];
    let valid = LeaseState::Valid;
    assert_eq!(
        counted(Some(nodes)),
        [
            ("node-0".into(), Some("zone".into()), 5, valid),
            ("node-1".into(), Some("pool".into()), 5, valid),
            ("node-2".into(), None, 90, LeaseState::Expired),
        ]
    );
}

#[test]
fn uncounted_nodes_have_no_lease() {
    let foreign = NodeTraits {
        not_managed_by_mcm: true,
        ..NodeTraits::default()
    };
    let leases = counted(Some([in_zone(0), node(1, foreign), in_zone(2)]));
    let nodes: Vec<_> = leases.iter().map(|(node, ..)| node.as_str()).collect();
    assert_eq!(nodes, ["node-0", "node-2"]);
    assert_eq!(counted(None), [], "while the nodes do not matter");
}

#[test]
fn name_of_a_node_is_kept_once() {
    let name: Arc<str> = "node-0".into();
    let mut judge = Judge::default();
    judge.observe(times(0.0), [lease("node-0", -1.0)], GRACE);
    let machines = [Some(Arc::clone(&name))];
    judge.set_machines(Arc::new(machines.into_iter().collect()));
    judge.set_nodes(vec![in_zone(0)]);
    // Here, and for the Machine, the lease and the node.
    assert_eq!(Arc::strong_count(&name), 4);
}
