//! Timelines of what is known to be wrong. Each says what happens today and what must: a cure
//! makes it fail, and turns `known(is, today, must)` into `assert_eq!(is, must)` in the file of its
//! matter.

use std::fmt::Debug;

use super::*;

#[track_caller]
fn known<T: Debug + PartialEq>(is: &T, today: &T, must: &T) {
    assert_ne!(is, must, "cured: assert what must be");
    assert_eq!(is, today, "wrong in another way, and must be {must:?}");
}

/// D-21: a start, clocks that are behind, and kubelets that are slow because their API server is:
/// renewals so far apart, and clocks so far off.
#[test]
fn start_beside_slow_clocks_does_harm() {
    let healthy_shoots = [
        (10.0, -60.0),
        (12.0, -60.0),
        (16.0, -60.0),
        (16.0, -25.0),
        (20.0, -12.0),
        (25.0, -9.0),
        (20.0, -5.0),
        (25.0, 0.0),
    ];
    let taken_down = healthy_shoots.map(|(beat, ahead)| {
        let mut leader = begin("suspended to 3 s, eligible at 3 s, in operation");
        (leader.nodes.beat, leader.nodes.ahead) = (beat, ahead);
        leader.until(300.0);
        !leader.writes().is_empty()
    });
    let today = [false, false, true, true, true, true, false, false];
    known(&taken_down, &today, &[false; 8]);
}
