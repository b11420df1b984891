use super::*;
use crate::tests::scene::{at, span, times, wall};

#[test]
fn wall_clock_places_a_stamp() {
    assert_eq!(times(100.0).place(wall(95.0)), at(95.0));
    let ahead = RequestTimes {
        wall: wall(160.0),
        ..times(100.0)
    };
    assert_eq!(
        ahead.place(wall(155.0)),
        at(95.0),
        "our own clock is 60 s ahead, and so are the stamps"
    );
    assert_eq!(
        times(1.0).place(wall(-3600.0)),
        at(-3600.0),
        "before the process began"
    );
}

#[test]
fn slow_answer_is_placed_by_its_end() {
    let slow = RequestTimes {
        sent: at(10.0),
        received: at(14.0),
        wall: wall(14.0),
    };
    assert_eq!(slow.place(wall(13.0)), at(13.0));
}

#[test]
fn moments_and_spans_add_up() {
    assert_eq!(at(5.0) + span(2.5), at(7.5));
    assert_eq!(at(5.0) - span(7.5), at(-2.5));
    assert_eq!(at(5.0) - at(7.5), span(-2.5));
    assert!(at(-1.0) < Moment::START && Moment::START < at(0.001));
}

#[test]
fn far_times_saturate() {
    let (first, last) = (
        Moment::since_start(TimeDelta::MIN),
        Moment::since_start(TimeDelta::MAX),
    );
    assert_eq!(last + span(1.0), last);
    assert_eq!(first - span(1.0), first);
    assert_eq!(last - first, TimeDelta::nanoseconds(i64::MAX));
    assert_eq!(first - last, TimeDelta::nanoseconds(i64::MIN));
    let (earliest, latest) = (DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC);
    assert!(times(0.0).place(earliest) < at(-1e9) && times(0.0).place(latest) > at(1e9));
}
