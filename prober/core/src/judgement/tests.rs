use std::sync::Arc;

use super::*;
use crate::tests::scene::{GRACE, lease, times};
use crate::verdict::NodeTraits;

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
