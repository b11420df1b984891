use std::time::Duration;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_look_follows_the_monotonic_clock_and_not_the_wall_clock() {
    // Here an hour passes in which the wall clock stands still: to the prober, one that was put
    // back by an hour.
    let clock = Clock::start();
    let before = clock.request_times(clock.now());
    tokio::time::advance(Duration::from_secs(3600)).await;
    let after = clock.request_times(clock.now());
    assert_eq!(after.received - before.received, TimeDelta::hours(1));
    assert_eq!(after.wall - before.wall, TimeDelta::hours(1));
    let stamp = before.wall;
    assert_eq!(
        after.place(stamp),
        before.place(stamp),
        "a stamp stays where it was placed"
    );
}

#[tokio::test(start_paused = true)]
async fn moments_and_instants_are_the_same_points() {
    let clock = Clock::start();
    tokio::time::advance(Duration::from_millis(1500)).await;
    assert_eq!(
        clock.now(),
        Moment::since_start(TimeDelta::milliseconds(1500))
    );
    assert_eq!(clock.instant(clock.now()), Instant::now());
    assert_eq!(
        clock.instant(Moment::START - TimeDelta::seconds(5)),
        clock.instant(Moment::START),
        "nothing is before the start"
    );
}
