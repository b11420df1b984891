//! D-23, D-84: what is taken down while the verdict holds.

use super::*;

#[test]
fn hold_undoes_nothing_that_others_do() {
    // From 1 s on no node counts, which proves nothing while anything is held down.
    tell(
        "
        a scale-down goes on | outage, 5 nodes, 1 spared, pods linger; 1 no node counts; 20 | 0.2 mcm 0, 5.2 kcm 0; verdicts: ScaleUp, ScaleDown, HoldUndecided
        with what was missing | outage, 5 nodes, 1 spared, kcm missing; 1 no node counts; 10 kcm running; 20 | 0.2 mcm 0, 10 kcm 0
        not with what was at 0 | outage, 5 nodes, 1 spared; 1 no node counts; 10 mcm raised; 20 | 0.2 mcm 0, 0.2 kcm 0
        nor with what was ignored | outage, 5 nodes, 1 spared, kcm ignored; 1 no node counts; 10 kcm running; 20 | 0.2 mcm 0
        which is next by a verdict | outage, 5 nodes, 1 spared, kcm ignored; 10 kcm running; 20 | 0.2 mcm 0, 10 kcm 0
        ",
    );
}
