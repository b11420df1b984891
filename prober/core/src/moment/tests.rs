use super::*;
use crate::tests::scene::{at, span, times, wall};

#[test]
fn stamp_is_placed_by_the_end_of_the_answer() {
    // Our own clock is 60 s ahead, and so are the stamps.
    let slow = RequestTimes {
        sent: at(10.0),
        received: at(14.0),
        wall: wall(74.0),
    };
    assert_eq!(slow.place(wall(73.0)), at(13.0));
}

#[test]
fn far_times_saturate() {
    let [first, last] = [TimeDelta::MIN, TimeDelta::MAX].map(Moment::since_start);
    assert_eq!((first - span(1.0), last + span(1.0)), (first, last));
    assert_eq!(last - first, TimeDelta::nanoseconds(i64::MAX));
    let [earliest, latest] =
        [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC].map(|stamp| times(0.0).place(stamp));
    assert!(earliest < at(-1e9) && latest > at(1e9));
}
