use std::sync::Arc;

use super::*;
use crate::replicas::{Marks, scale_down};

fn limits(direction: Direction, timeout: u64) -> Vec<u64> {
    let mut retry = Retry::new(direction, Duration::from_secs(timeout));
    let mut limits = vec![retry.limit().as_secs()];
    while retry.pause_after(&Refusal::Timeout).is_some() {
        limits.push(retry.limit().as_secs());
    }
    limits
}

#[test]
fn protection_asks_again_soon() {
    assert_eq!(limits(Direction::Down, 12), [5, 7, 5, 7, 5, 7]);
    assert_eq!(limits(Direction::Down, 5), [5, 5, 5]);
    assert_eq!(limits(Direction::Down, 3), [3, 3, 3]);
    assert_eq!(limits(Direction::Up, 12), [12, 12, 12]);
}

#[test]
fn unanswered_write_is_recognized() {
    let before = Observed {
        uid: "u".into(),
        replicas: 2,
        ..Observed::default()
    };
    let change = PlannedWrite {
        write: scale_down(&before, true).unwrap(),
        base: Arc::new(before.clone()),
    };
    let marks = Marks {
        replicas: Some("2".into()),
        held_down: true,
        ignored: false,
    };
    let after = Observed {
        replicas: 0,
        marks,
        ..before.clone()
    };
    let landed = |refusal, now: &Observed| {
        let mut retry = Retry::new(Direction::Down, Duration::from_secs(30));
        retry.failed(change.clone(), &refusal);
        retry.landed(now).is_some()
    };
    assert!(landed(Refusal::Timeout, &after));
    assert!(!landed(Refusal::Conflict, &after), "somebody else did it");
    assert!(!landed(
        Refusal::Timeout,
        &Observed {
            uid: "another".into(),
            ..after.clone()
        }
    ));
    assert!(
        !landed(
            Refusal::Timeout,
            &Observed {
                replicas: 0,
                ..before.clone()
            }
        ),
        "not marked"
    );
}

#[test]
fn longest_wait_by_refusal() {
    let said = String::new;
    #[rustfmt::skip]
    let cases = [
        (Refusal::Unavailable { code: 503, said: said() }, 15),
        (Refusal::NoAnswer(said()), 15),
        (Refusal::Timeout, 15),
        (Refusal::Throttled(None), 15),
        (Refusal::Denied { code: 403, said: said() }, 300),
    ];
    for (refusal, longest) in cases {
        let mut backoff = ScalingBackoff::default();
        (0..20).for_each(|_| backoff.failed(&refusal, Moment::START));
        let wait = backoff.again_at - Moment::START;
        assert_eq!(wait.num_seconds(), longest, "{refusal:?}");
    }
}

#[test]
fn overloaded_seed_delays_by_1_s() {
    let pause = |after| {
        let mut retry = Retry::new(Direction::Down, Duration::from_secs(30));
        let refusal = Refusal::Throttled(Some(Duration::from_millis(after)));
        retry.pause_after(&refusal).expect("another attempt")
    };
    assert_eq!(pause(400), Duration::from_millis(400));
    assert_eq!(pause(30_000), MAX_THROTTLE);
}
