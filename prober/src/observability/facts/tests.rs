use super::*;
use crate::seed::ClusterState;

#[test]
fn a_cluster_without_a_shoot_and_one_that_is_broken_say_so() {
    let state = |shoot| {
        ShootState::from(&ClusterState {
            uid: String::new(),
            seed: Default::default(),
            shoot,
            lifecycle: None,
            settings: Default::default(),
        })
    };
    assert_eq!(state(None), ShootState::NoShoot);
    let broken = state(Some(Err("spec: a number".into())));
    assert_eq!(<&str>::from(&broken), "unreadable");
    assert!(broken.meaning().contains("spec: a number"));
}
