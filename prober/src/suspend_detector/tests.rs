use futures::FutureExt;

use super::*;
use crate::tests::{at, wall};

#[test]
fn a_gap_in_the_beats_is_a_standstill_that_ends_with_the_gap() {
    // Seconds of the monotonic clock and of the wall clock at each tick, and when the last
    // suspension ended.
    for (ticks, resumed) in [
        ("1 1, 6 6, 10.9 10.9", None),
        ("1 1, 6.1 6.1, 7.1 7.1", Some(6.1)),
        // The last one counts.
        ("1 1, 6.1 6.1, 307 307, 308 308", Some(307.0)),
        // A wall clock that was set forward: the machine may have slept.
        ("1 61, 2 62", Some(1.0)),
        // One that is slewed.
        ("1 3, 2 5", None),
        // One that was set back is no standstill, and hides none.
        ("1 -59, 2 -58", None),
        ("1 1, 31 -59", Some(31.0)),
    ] {
        let mut state = Ticks {
            last: at(0.0),
            wall: wall(0.0),
            resumed: Moment::START,
        };
        for tick in ticks.split(", ") {
            let (now, shown) = tick.split_once(' ').expect(tick);
            let [now, shown] = [now, shown].map(|second| second.parse().expect(tick));
            state.tick(at(now), wall(shown));
        }
        assert_eq!(state.resumed, resumed.map_or(Moment::START, at), "{ticks}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_rests_on_older_findings_is_dropped_by_whoever_runs_first_after_a_standstill() {
    let clock = Clock::start(Utc::now());
    let detector = SuspendDetector::new(clock, Utc::now);
    let since = clock.now();
    let run = |since| {
        detector
            .run_unless_suspended(since, async { 1 })
            .now_or_never()
            .flatten()
    };
    assert_eq!(run(since), Some(1));
    // Something that waits for ever for its turn, as a request for a connection.
    let waits = std::future::pending::<()>();
    let mut act = Box::pin(detector.run_unless_suspended(since, waits));
    assert!(act.as_mut().now_or_never().is_none(), "it waits");
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(act.as_mut().now_or_never(), Some(None));
    assert_eq!(
        (run(since), run(clock.now())),
        (None, Some(1)),
        "of what begins later on them, too"
    );
    // A process that only waits beats all the same.
    let detector = SuspendDetector::new(clock, Utc::now);
    let wait = Duration::from_secs(300);
    tokio::time::timeout(wait, detector.run())
        .await
        .expect_err("it goes on");
    assert_eq!(detector.resumed(), Moment::START);
}
