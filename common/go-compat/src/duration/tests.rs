use super::*;
use proptest::prelude::*;

fn nanos(text: &str) -> Result<i64, GoDurationError> {
    text.parse::<GoDuration>().map(GoDuration::as_nanos)
}

#[test]
fn go_spellings_have_their_exact_value() {
    for (text, expected) in [
        ("0", 0),
        ("-0", 0),
        ("+0", 0),
        ("0s", 0),
        ("1h15m30.5s", 4_530_500_000_000),
        (".5s", 500_000_000),
        ("5.s", 5_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("250ms", 250_000_000),
        ("10us", 10_000),
        ("10\u{b5}s", 10_000),
        ("10\u{3bc}s", 10_000),
        ("-1.5h", -5_400_000_000_000),
        ("+5s", 5_000_000_000),
        ("3m3m", 360_000_000_000),
        ("1s1h", 3_601_000_000_000),
        ("0.9999999999s", 999_999_999),
        ("0.3333333333333333333h", 1_200_000_000_000),
        ("0.100000000000000000000h", 360_000_000_000),
        ("52763797000ns", 52_763_797_000),
        ("9223372036854775807ns", i64::MAX),
        ("9223372036854775.807us", i64::MAX),
        ("-9223372036854775808ns", i64::MIN),
        ("-2562047h47m16.854775808s", i64::MIN),
    ] {
        assert_eq!(nanos(text), Ok(expected), "{text}");
    }
}

#[test]
fn what_go_refuses_is_refused() {
    use GoDurationError::*;
    for (text, expected) in [
        ("", Empty),
        ("-", Empty),
        ("+", Empty),
        ("3", NoUnit),
        ("30", NoUnit),
        ("1.5", NoUnit),
        (".", NoNumber),
        ("-.", NoNumber),
        (".s", NoNumber),
        ("+.s", NoNumber),
        ("s", NoNumber),
        (" 1s", NoNumber),
        ("--1s", NoNumber),
        ("1s.", NoNumber),
        ("1s ", UnknownUnit("s ".into())),
        ("1 s", UnknownUnit(" s".into())),
        ("1d", UnknownUnit("d".into())),
        ("1w", UnknownUnit("w".into())),
        ("1S", UnknownUnit("S".into())),
        ("1h-1m", UnknownUnit("h-".into())),
        ("00", NoUnit),
        ("9223372036854775808ns", Overflow),
        ("9223372036854775.808us", Overflow),
        ("-9223372036854775809ns", Overflow),
        ("18446744073709551616ns", Overflow),
        ("2562047h47m16.854775808s", Overflow),
        ("3000000h", Overflow),
        ("9223372036854775808ns9223372036854775808ns", Overflow),
    ] {
        assert_eq!(nanos(text), Err(expected), "{text}");
    }
}

#[test]
fn an_endless_unit_is_not_repeated_in_full() {
    let error = "1".to_owned() + &"x".repeat(100_000);
    assert_eq!(
        nanos(&error),
        Err(GoDurationError::UnknownUnit("x".repeat(20)))
    );
}

#[test]
fn it_is_written_as_go_writes_it() {
    for (nanos, expected) in [
        (0, "0s"),
        (1, "1ns"),
        (1_100, "1.1\u{b5}s"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (245_000_000_000, "4m5s"),
        (245_001_000_000, "4m5.001s"),
        (18_367_001_000_000, "5h6m7.001s"),
        (480_000_000_001, "8m0.000000001s"),
        (3_600_000_000_000, "1h0m0s"),
        (-1, "-1ns"),
        (i64::MAX, "2562047h47m16.854775807s"),
        (i64::MIN, "-2562047h47m16.854775808s"),
    ] {
        assert_eq!(GoDuration(nanos).to_string(), expected);
    }
}

#[test]
fn conversion_to_std_keeps_the_span_and_refuses_a_negative_one() {
    assert_eq!(GoDuration(1).to_std(), Some(Duration::from_nanos(1)));
    assert_eq!(GoDuration(-1).to_std(), None);
    assert_eq!(GoDuration::from_std(Duration::MAX).as_nanos(), i64::MAX);
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(nanos in any::<i64>()) {
        let written = GoDuration(nanos).to_string();
        prop_assert_eq!(written.parse::<GoDuration>(), Ok(GoDuration(nanos)));
    }

    #[test]
    fn a_chain_of_whole_units_is_their_sum(
        negative in any::<bool>(),
        parts in prop::collection::vec((0u32..100_000, 0usize..8), 1..6),
    ) {
        let units = [
            ("ns", 1i64), ("us", 1_000), ("\u{b5}s", 1_000), ("\u{3bc}s", 1_000),
            ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000),
        ];
        let sum: i64 = parts.iter().map(|(count, unit)| i64::from(*count) * units[*unit].1).sum();
        let text: String = parts.iter().map(|(count, unit)| format!("{count}{}", units[*unit].0)).collect();
        let (text, sum) = if negative { (format!("-{text}"), -sum) } else { (text, sum) };
        prop_assert_eq!(nanos(&text), Ok(sum));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[-+.0-9a-zµμ ]{0,40}") {
        let _ = nanos(&text);
    }
}
