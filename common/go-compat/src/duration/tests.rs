use super::*;
use proptest::prelude::*;

fn nanos(text: &str) -> Result<u128, GoDurationError> {
    let duration = text.parse::<GoDuration>();
    duration.map(|duration| duration.0.as_nanos())
}

#[test]
fn go_spellings_have_their_exact_value() {
    for (text, expected) in [
        ("0", 0),
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
        ("+5s", 5_000_000_000),
        ("3m3m", 360_000_000_000),
        ("1s1h", 3_601_000_000_000),
        ("007s", 7_000_000_000),
        ("0.9999999999s", 999_999_999),
        ("0.3333333333333333333h", 1_199_999_999_999),
        ("0.100000000000000000000h", 360_000_000_000),
        ("52763797000ns", 52_763_797_000),
        ("9223372036854775807ns", i64::MAX as u128),
        ("9223372036854775.807us", i64::MAX as u128),
    ] {
        assert_eq!(nanos(text), Ok(expected), "{text}");
    }
}

#[test]
fn what_go_refuses_is_refused() {
    for text in [
        "",
        "-",
        "+",
        "3",
        "30",
        "00",
        "1.5",
        ".",
        "-.",
        ".s",
        "+.s",
        "s",
        " 1s",
        "--1s",
        "++1s",
        "1s.",
        "1.2.3s",
        "0.09223372036854775807.s",
        "1s ",
        "1 s",
        "1d",
        "1w",
        "1S",
        "1h-1m",
        "9223372036854775808ns",
        "9223372036854775.808us",
        "18446744073709551616ns",
        "2562047h47m16.854775808s",
        "3000000h",
        "9223372036854775808ns9223372036854775808ns",
    ] {
        assert_eq!(nanos(text), Err(GoDurationError), "{text}");
    }
}

#[test]
fn negative_durations_are_refused() {
    for text in ["-0", "-5s", "-1.5h", "-9223372036854775808ns"] {
        assert_eq!(nanos(text), Err(GoDurationError), "{text}");
    }
}

#[test]
fn it_is_written_as_go_writes_it() {
    for (nanos, expected) in [
        (0, "0s"),
        (1, "1ns"),
        (1_100, "1.1\u{b5}s"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (60_000_000_000, "1m0s"),
        (245_000_000_000, "4m5s"),
        (245_001_000_000, "4m5.001s"),
        (18_367_001_000_000, "5h6m7.001s"),
        (480_000_000_001, "8m0.000000001s"),
        (3_600_000_000_000, "1h0m0s"),
        (i64::MAX as u64, "2562047h47m16.854775807s"),
    ] {
        let duration = GoDuration(Duration::from_nanos(nanos));
        assert_eq!(duration.to_string(), expected);
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(nanos in 0..=i64::MAX as u64) {
        let written = GoDuration(Duration::from_nanos(nanos));
        prop_assert_eq!(written.to_string().parse(), Ok(written));
    }

    #[test]
    fn a_chain_of_whole_units_is_their_sum(
        parts in prop::collection::vec((0u32..100_000, 0usize..8), 1..6),
    ) {
        let units = [
            ("ns", 1u128), ("us", 1_000), ("\u{b5}s", 1_000), ("\u{3bc}s", 1_000),
            ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000),
        ];
        let sum = parts.iter().map(|(count, unit)| u128::from(*count) * units[*unit].1).sum();
        let text: String = parts.iter().map(|(count, unit)| format!("{count}{}", units[*unit].0)).collect();
        prop_assert_eq!(nanos(&text), Ok(sum));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[-+.0-9a-zµμ ]{0,40}") {
        let _ = nanos(&text);
    }
}
