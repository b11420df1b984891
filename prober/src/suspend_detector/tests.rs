use futures::FutureExt;

use super::*;
use crate::tests::{at, wall};

/// Ticks at these seconds of the monotonic clock and of the wall clock; when the last suspension
/// ended.
fn resumed(ticks: &[(f64, f64)]) -> Moment {
    let mut state = Ticks {
        last: at(0.0),
        wall: wall(0.0),
        resumed: Moment::START,
    };
    for &(now, shown) in ticks {
        state.tick(at(now), wall(shown));
    }
    state.resumed
}

#[test]
fn a_gap_in_the_beats_is_a_standstill_that_ends_with_the_gap() {
    for (ticks, expected) in [
        (&[(1.0, 1.0), (6.0, 6.0), (10.9, 10.9)][..], Moment::START),
        (&[(1.0, 1.0), (6.1, 6.1), (7.1, 7.1)], at(6.1)),
        // The last one counts.
        (
            &[(1.0, 1.0), (6.1, 6.1), (307.0, 307.0), (308.0, 308.0)],
            at(307.0),
        ),
        // A wall clock that was set forward: the machine may have slept.
        (&[(1.0, 61.0), (2.0, 62.0)], at(1.0)),
        // One that is slewed.
        (&[(1.0, 3.0), (2.0, 5.0)], Moment::START),
        // One that was set back is no standstill, and hides none.
        (&[(1.0, -59.0), (2.0, -58.0)], Moment::START),
        (&[(1.0, 1.0), (31.0, -59.0)], at(31.0)),
    ] {
        assert_eq!(resumed(ticks), expected, "{ticks:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_rests_on_older_findings_is_dropped_by_whoever_runs_first_after_a_standstill() {
    let clock = Clock::start();
    let suspend_detector = SuspendDetector::new(clock);
    let since = clock.now();
    assert_eq!(
        suspend_detector
            .run_unless_suspended(since, async { 1 })
            .await,
        Some(1)
    );
    // Something that waits for ever for its turn, as a request for a connection.
    let waits = std::future::pending::<()>();
    let mut act = Box::pin(suspend_detector.run_unless_suspended(since, waits));
    assert!(act.as_mut().now_or_never().is_none(), "it waits");
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(act.as_mut().now_or_never(), Some(None));
    assert_eq!(
        suspend_detector
            .run_unless_suspended(since, async { 1 })
            .await,
        None,
        "and what begins later on them, too"
    );
    assert_eq!(
        suspend_detector
            .run_unless_suspended(clock.now(), async { 1 })
            .await,
        Some(1),
        "but not what rests on new ones"
    );
}

#[tokio::test(start_paused = true)]
async fn a_process_that_only_waits_beats_all_the_same() {
    let suspend_detector = SuspendDetector::new(Clock::start());
    let wait = tokio::time::sleep(Duration::from_secs(300));
    tokio::select! {
        () = suspend_detector.run() => {}
        () = wait => {}
    }
    assert_eq!(suspend_detector.resumed(), Moment::START);
}
