use std::fmt::Debug;
use std::io::Write;

use super::*;
use proptest::prelude::*;

fn parse<T>(
    file: &str,
    text: &str,
    read: impl FnOnce(&ConfigValue<'_>) -> Option<T>,
) -> Result<Loaded<T>, ConfigError> {
    let contents = Contents {
        file: file.to_owned(),
        bytes: text.into(),
    };
    contents.load(read)
}

/// Reads one field `x` of a document and gives the value and all errors.
fn field<T: Debug>(
    yaml: &str,
    read: impl FnOnce(&ConfigValue<'_>) -> Option<T>,
) -> Result<Option<T>, String> {
    match parse("file", yaml, |root| Some(read(&root.field("x")))) {
        Ok(loaded) => Ok(loaded.config),
        Err(error) => Err(error.to_string()),
    }
}

fn refused<T: Debug>(yaml: &str, read: impl FnOnce(&ConfigValue<'_>) -> Option<T>) -> String {
    field(yaml, read).expect_err(yaml)
}

#[test]
fn yaml_1_1_words_are_booleans() {
    for word in [
        "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE",
    ] {
        assert_eq!(
            field(&format!("x: {word}"), |x| x.boolean()),
            Ok(Some(true)),
            "{word}"
        );
    }
    for word in [
        "n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE",
    ] {
        assert_eq!(
            field(&format!("x: {word}"), |x| x.boolean()),
            Ok(Some(false)),
            "{word}"
        );
    }
    assert!(refused("x: 'yes'", |x| x.boolean()).contains("x: \"yes\": expected true or false"));
    assert!(refused("x: 1", |x| x.boolean()).contains("x: 1: expected true or false"));
}

#[test]
fn null_in_any_spelling_is_absence() {
    for spelling in [
        "x:",
        "x: ~",
        "x: null",
        "x: Null",
        "x: NULL",
        "{}",
        "",
        "# nothing",
        "---\n",
        "y: 1",
    ] {
        assert_eq!(field(spelling, |x| x.integer()), Ok(None), "{spelling:?}");
    }
}

#[test]
fn integers_are_read_as_yaml_1_1_writes_them() {
    for (spelling, expected) in [
        ("7", 7),
        ("-3", -3),
        ("+3", 3),
        ("010", 8),
        ("-010", -8),
        ("0o10", 8),
        ("0x10", 16),
        ("0b11", 3),
        ("1_000", 1000),
        ("1.0", 1),
        ("-2.0", -2),
        ("1e3", 1000),
        ("2147483647", i32::MAX),
        ("-2147483648", i32::MIN),
    ] {
        assert_eq!(
            field(&format!("x: {spelling}"), |x| x.integer()),
            Ok(Some(expected)),
            "{spelling}"
        );
    }
}

#[test]
fn what_is_no_whole_number_is_refused_with_its_value() {
    for (spelling, shown) in [
        ("1.5", "1.5"),
        ("\"1\"", "\"1\""),
        ("yes", "true"),
        ("2147483648", "2147483648"),
        ("1:30", "\"1:30\""),
        (".inf", "inf"),
        (".nan", "NaN"),
        ("99999999999999999999", "1e20"),
        ("[1]", "a list"),
        ("{a: 1}", "a map"),
    ] {
        let error = refused(&format!("x: {spelling}"), |x| x.integer());
        assert!(
            error.contains(&format!("\n  x: {shown}: expected a whole number")),
            "{spelling}: {error}"
        );
    }
}

#[test]
fn numbers_need_no_fraction_but_no_quotes_either() {
    assert_eq!(field("x: 0.6", |x| x.number()), Ok(Some(0.6)));
    assert_eq!(field("x: .5", |x| x.number()), Ok(Some(0.5)));
    assert_eq!(field("x: 1", |x| x.number()), Ok(Some(1.0)));
    assert!(
        refused("x: '0.6'", |x| x.number())
            .contains("x: \"0.6\": expected a number, without quotes")
    );
}

#[test]
fn bare_scalars_become_text_where_text_is_due() {
    for (spelling, expected) in [
        ("abc", "abc"),
        ("123", "123"),
        ("010", "8"),
        ("yes", "true"),
        ("off", "false"),
        ("1.5", "1.5"),
        ("1.0", "1"),
        ("-0.0", "-0"),
        ("100000.0", "100000"),
        ("1000000.0", "1e+06"),
        ("0.00012", "0.00012"),
        ("0.000012", "1.2e-05"),
        ("1.23456789", "1.2345679"),
        ("18446744073709551616", "1.8446744e+19"),
        (".inf", "+Inf"),
        ("'yes'", "yes"),
        ("''", ""),
    ] {
        assert_eq!(
            field(&format!("x: {spelling}"), |x| x.text()),
            Ok(Some(expected.to_owned())),
            "{spelling}"
        );
    }
    assert!(refused("x: [a]", |x| x.text()).contains("x: a list: expected a string"));
}

#[test]
fn durations_are_go_strings_and_never_bare_numbers() {
    let nanos = |text: &str| field(text, |value| Some(value.duration()?.to_std().as_nanos()));
    for (spelling, expected) in [
        ("1h15m30.5s", 4_530_500_000_000),
        (".5s", 500_000_000),
        ("1.5h", 5_400_000_000_000),
        ("250ms", 250_000_000),
        ("10us", 10_000),
        ("10µs", 10_000),
        ("\"0\"", 0),
    ] {
        assert_eq!(
            nanos(&format!("x: {spelling}")),
            Ok(Some(expected)),
            "{spelling}"
        );
    }
    for spelling in [
        "0", "30", "1.5", "-5s", "\"30\"", "1 s", "1d", "yes", "[30s]",
    ] {
        let error = nanos(&format!("x: {spelling}")).expect_err(spelling);
        assert!(
            error.contains("expected a duration like \"30s\""),
            "{spelling}: {error}"
        );
    }
}

#[test]
fn keys_match_in_any_case_and_the_last_in_byte_order_wins() {
    let level = |yaml: &str| {
        parse("file", yaml, |root| Some(root.field("minLevel").integer()))
            .map(|loaded| loaded.config)
            .ok()
    };
    assert_eq!(level("MINLEVEL: 1"), Some(Some(1)));
    assert_eq!(level("minLevel: 2\nMINLEVEL: 1"), Some(Some(2)));
    assert_eq!(level("MINLEVEL: 1\nminLevel: 2"), Some(Some(2)));
    assert_eq!(level("minlevel: 1\nMINLEVEL: 3"), Some(Some(1)));
    assert_eq!(
        level("minlevel: 1\nminLevel: 2"),
        Some(Some(1)),
        "as Go has it, which sorts the keys"
    );
    assert_eq!(level("min_level: 1"), Some(None));
}

#[test]
fn the_last_duplicate_and_the_first_document_count() {
    assert_eq!(field("x: 1\nx: 2", |x| x.integer()), Ok(Some(2)));
    assert_eq!(field("x: 1\n---\nx: 2", |x| x.integer()), Ok(Some(1)));
    assert_eq!(
        field("x: 1\n---\n\tnot yaml: [", |x| x.integer()),
        Ok(Some(1))
    );
    assert_eq!(field("x: 1\n...\n", |x| x.integer()), Ok(Some(1)));
}

#[test]
fn anchors_and_merge_keys_are_resolved() {
    assert_eq!(field("a: &a 5\nx: *a", |x| x.integer()), Ok(Some(5)));
    let merged = field("base: &b {p: 7, q: 1}\nx:\n  <<: *b\n  q: 2", |value| {
        let object = value.object()?;
        Some((object.field("p").integer()?, object.field("q").integer()?))
    });
    assert_eq!(merged, Ok(Some((7, 2))));
}

#[test]
fn all_errors_are_reported_together_under_their_paths() {
    let yaml = "list:\n- {a: x}\n- {a: 1, b: {c: '5'}}\n- word\n";
    let error = parse("dep.yaml", yaml, |root| {
        root.field("list").list(|item| {
            let object = item.object()?;
            object.field("a").integer();
            object.field("b").field("C").number()
        });
        let key = ConfigKey {
            name: "other",
            takes: "something",
            default: "",
            meaning: "",
        };
        root.read(&key, |value| value.text())
    })
    .expect_err("four errors");
    assert_eq!(
        error.to_string(),
        "dep.yaml: 4 errors\n  \
         list[0].a: \"x\": expected a whole number that fits in 32 bits, without quotes (line 2, column 7)\n  \
         list[1].b.C: \"5\": expected a number, without quotes (line 3, column 17)\n  \
         list[2]: \"word\": expected an object (line 4, column 3)\n  \
         other: missing: expected something"
    );
    assert_eq!(error.fields().len(), 4);
}

#[test]
fn unknown_keys_are_ignored_with_a_warning() {
    let Loaded { warnings, .. } = parse("file", "x: {known: 1, KNOWN: 2, typo: 3}", |root| {
        root.field("x").object()?.warn_of_unknown(&[ConfigKey {
            name: "known",
            takes: "",
            default: "",
            meaning: "",
        }]);
        Some(())
    })
    .expect("no error");
    assert_eq!(
        warnings,
        ["x.typo: unknown key, ignored (line 1, column 31)"]
    );
}

#[test]
fn maps_of_data_give_their_entries_in_order() {
    let Loaded {
        config: entries, ..
    } = parse("file", "x: {b: 1, a: ~}", |root| {
        root.field("x")
            .entries(|key, value| Some((key.to_owned(), value.path.clone(), value.is_absent())))
    })
    .expect("no error");
    assert_eq!(
        entries,
        [
            ("b".into(), "x.b".into(), false),
            ("a".into(), "x.a".into(), true)
        ]
    );
}

#[test]
fn a_document_that_is_no_object_is_refused() {
    assert!(
        refused("just words", |x| x.text())
            .contains("the file: \"just words\": expected an object")
    );
    assert!(refused("[1, 2]", |x| x.text()).contains("the file: a list: expected an object"));
}

#[test]
fn what_is_no_yaml_is_refused_with_its_place() {
    for yaml in [
        "x:\n\t- 1\n\t- 2",
        "y:\n\tx: 1",
        "x:\n  a: 1\n\tb: 2",
        "x: [\n\t1]",
        "x: [",
        "x: 'a",
        "x: *nowhere",
        "x: 1\n y: 2",
    ] {
        let error = refused(yaml, |x| x.text());
        assert!(error.starts_with("file: 1 error\n  "), "{yaml}: {error}");
        assert!(error.contains(" at line "), "{yaml}: {error}");
    }
}

#[test]
fn a_key_that_is_no_text_is_refused() {
    assert_eq!(
        refused("{[a]: 1}", |x| x.text()),
        "file: 1 error\n  a list cannot be a key"
    );
}

#[test]
fn an_alias_bomb_is_refused_quickly() {
    let mut yaml = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let items = vec![format!("*a{}", level - 1); 10].join(",");
        yaml += &format!("a{level}: &a{level} [{items}]\n");
    }
    assert!(refused(&yaml, |x| x.text()).starts_with("file: 1 error"));
}

#[test]
fn too_deep_and_too_large_documents_are_refused() {
    let deep = format!("x: {}{}", "[".repeat(5000), "]".repeat(5000));
    assert!(refused(&deep, |x| x.text()).starts_with("file: 1 error"));
    let large = format!("x: {}", "a".repeat(MAX_BYTES as usize));
    assert!(refused(&large, |x| x.text()).contains("larger than 1048576 bytes"));
    let largest = format!("x: {}", "a".repeat(MAX_BYTES as usize - 3));
    assert!(field(&largest, |x| x.text()).is_ok());
}

#[test]
fn a_document_of_too_many_values_is_refused() {
    let yaml: String = (0..20_000).map(|n| format!("k{n}: 1\n")).collect();
    assert!(refused(&yaml, |x| x.text()).starts_with("file: 1 error"));
}

#[test]
fn a_key_is_named_on_one_line_and_not_at_any_length() {
    let warnings = |yaml: &str| {
        let Loaded { warnings, .. } = parse("file", yaml, |root| {
            root.warn_of_unknown(&[]);
            Some(())
        })
        .expect(yaml);
        warnings
    };
    assert_eq!(
        warnings("\"a\\nb\": 1"),
        ["a\\nb: unknown key, ignored (line 1, column 9)"]
    );
    assert!(
        warnings(&format!("{}: 1", "k".repeat(1000)))[0]
            .starts_with(&format!("{}...: unknown key", "k".repeat(80)))
    );
}

#[test]
fn a_long_value_is_shortened_in_its_error() {
    let error = refused(&format!("x: {}", "é".repeat(500)), |x| x.boolean());
    assert!(
        error.contains(&format!("\"{}\"...", "é".repeat(60))),
        "{error}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_cause() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing.yaml");
    let error = Contents::of(&missing).expect_err("no file").to_string();
    assert_eq!(
        error,
        format!(
            "{}: No such file or directory (os error 2)",
            missing.display()
        )
    );

    let binary = folder.path().join("binary.yaml");
    std::fs::File::create(&binary)
        .and_then(|mut file| file.write_all(&[0xff, 0xfe, 0x00]))
        .expect("written");
    let error = Contents::of(&binary)
        .and_then(|contents| contents.load(|_| Some(())))
        .expect_err("no text")
        .to_string();
    assert_eq!(
        error,
        format!("{}: 1 error\n  it is not UTF-8 text", binary.display())
    );

    assert!(
        Contents::of(folder.path())
            .expect_err("a folder")
            .to_string()
            .contains("directory")
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[-:\\[\\]{}&*!|>'\"%@#,? \n\ta-c0-9~.<_]{0,200}") {
        let _ = field(&text, |value| {
            let _ = (value.text(), value.integer(), value.number(), value.duration(), value.boolean(), value.list(|item| item.text()));
            value.object()
        }.map(|_| ()));
    }

    #[test]
    fn an_integer_is_read_as_written(number in any::<i32>()) {
        prop_assert_eq!(field(&format!("x: {number}"), |x| x.integer()), Ok(Some(number)));
    }
}
