use std::sync::Arc;

use super::*;
use crate::replicas::scale_down;
use crate::tests::scene::running;

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
    let base = Arc::new(running(2));
    let write = scale_down(&base, true).expect("a write");
    let change = PlannedWrite { base, write };
    let after = change.after("2".into());
    let mut another = after.clone();
    another.uid = "another".into();
    let mut unmarked = after.clone();
    unmarked.marks.held_down = false;
    for (refusal, now, is_recognized) in [
        (Refusal::Timeout, &after, true),
        // Somebody else did it.
        (Refusal::Conflict, &after, false),
        (Refusal::Timeout, &another, false),
        (Refusal::Timeout, &unmarked, false),
    ] {
        let mut retry = Retry::new(Direction::Down, Duration::from_secs(30));
        retry.failed(change.clone(), &refusal);
        assert_eq!(
            retry.landed(now).is_some(),
            is_recognized,
            "{refusal:?}, {now:?}"
        );
    }
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
    for (after, pause) in [(400, 400), (30_000, 1000)] {
        let mut retry = Retry::new(Direction::Down, Duration::from_secs(30));
        let refusal = Refusal::Throttled(Some(Duration::from_millis(after)));
        let expected = Duration::from_millis(pause);
        assert_eq!(retry.pause_after(&refusal), Some(expected));
    }
}
