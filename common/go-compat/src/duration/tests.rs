use super::*;

/// A duration and its nanoseconds.
const DURATIONS: &str = "
    0                        0
    +0                       0
    0s                       0
    1ns                      1
    1.1us                    1100
    10\u{b5}s                10000
    10\u{3bc}s               10000
    2.2ms                    2200000
    .5s                      500000000
    5.s                      5000000000
    +5s                      5000000000
    007s                     7000000000
    0.9999999999s            999999999
    1m                       60000000000
    4m5.001s                 245001000000
    3m3m                     360000000000
    8m1ns                    480000000001
    1h                       3600000000000
    1s1h                     3601000000000
    1.5h                     5400000000000
    1h15m30.5s               4530500000000
    0.3333333333333333333h   1199999999999
    0.100000000000000000000h 360000000000
    9223372036854775807ns    9223372036854775807
    9223372036854775.807us   9223372036854775807";

/// Refused; all but those with a sign by Go, too. `_` stands for a blank.
const REFUSED: &str = "
    - + 3 30 00 1.5 . -. .s +.s s _1s --1s ++1s 1s. 1.2.3s 0.09223372036854775807.s 1s_ 1_s 1d 1w 1S 1h-1m
    9223372036854775808ns 9223372036854775.808us 18446744073709551616ns 2562047h47m16.854775808s 3000000h
    9223372036854775808ns9223372036854775808ns -0 -5s -1.5h -9223372036854775808ns";

#[test]
fn a_duration_is_read_as_by_go() {
    for row in DURATIONS.trim().lines() {
        let [text, nanos] = row.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let read: GoDuration = text.parse().unwrap();
        assert_eq!(read.0.as_nanos().to_string(), nanos, "{text}");
        assert_eq!(read.to_string().parse(), Ok(read), "{text}");
    }
    for text in REFUSED.split_whitespace().chain([""]) {
        let refused = text.replace('_', " ").parse::<GoDuration>();
        assert_eq!(refused, Err(GoDurationError), "{text}");
    }
}
