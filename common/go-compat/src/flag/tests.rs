use super::*;
use proptest::prelude::*;

#[test]
fn whole_numbers_are_read_as_in_go_source() {
    for (text, expected) in [
        ("7", 7),
        ("+7", 7),
        ("-7", -7),
        ("0", 0),
        ("0x1F", 31),
        ("0X1f", 31),
        ("-0x10", -16),
        ("0o17", 15),
        ("017", 15),
        ("0b101", 5),
        ("1_000", 1000),
        ("0x_ff", 255),
        ("0_7", 7),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
    ] {
        assert_eq!(integer(text), Ok(expected), "{text}");
    }
    for text in [
        "",
        "-",
        "+-1",
        "1.0",
        "1e3",
        "0x",
        "08",
        "_1",
        "1_",
        "1__0",
        "0x__1",
        "9223372036854775808",
        "é",
    ] {
        assert!(integer(text).is_err(), "{text:?}");
    }
}

proptest! {
    #[test]
    fn a_whole_number_is_read_in_every_base(number in any::<i64>()) {
        let (sign, size) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
        for text in [format!("{number}"), format!("{sign}{size:#x}"), format!("{sign}{size:#o}"), format!("{sign}{size:#b}")] {
            prop_assert_eq!(integer(&text), Ok(number));
        }
    }
}
