use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::Write;
use std::time::Duration;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

/// Has a field of each type.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct Sample {
    name: String,
    is_on: bool,
    level: i32,
    share: f64,
    #[serde(with = "go_compat::duration")]
    wait: Duration,
    list: Vec<Item>,
    labels: BTreeMap<String, String>,
    item: Option<Item>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Item {
    a: i32,
    b: String,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            name: "none".to_owned(),
            is_on: true,
            level: 7,
            share: 0.5,
            wait: Duration::from_secs(30),
            list: Vec::new(),
            labels: BTreeMap::new(),
            item: None,
        }
    }
}

fn load(text: &str) -> Result<Loaded<Sample>, ConfigError> {
    let contents = Contents {
        file: "file".to_owned(),
        bytes: text.into(),
    };
    let known = Sample {
        list: vec![Item::default()],
        labels: BTreeMap::from([Default::default()]),
        item: Some(Item::default()),
        ..Sample::default()
    };
    contents.load(
        &known,
        &[("oldName", "a key of old, which name replaced")],
        |sample, found| {
            found.require("level", sample.level >= 0, "a level of at least 0");
            found.require("share", sample.share <= 1.0, "a share of at most 1");
            sample
        },
    )
}

fn read(text: &str) -> Sample {
    load(text)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .config
}

fn refused(text: &str) -> String {
    load(text).expect_err(text).to_string()
}

#[test]
fn yaml_1_1_words_are_booleans() {
    for word in ["y", "Yes", "on", "On", "ON", "true", "True", "TRUE"] {
        assert!(read(&format!("isOn: {word}")).is_on, "{word}");
    }
    for word in ["n", "No", "off", "Off", "OFF", "false", "False", "FALSE"] {
        assert!(!read(&format!("isOn: {word}")).is_on, "{word}");
    }
    assert!(refused("isOn: 'yes'").contains("isOn: \"yes\": expected true or false"));
    assert!(refused("isOn: 1").contains("isOn: 1: expected true or false"));
}

#[test]
fn null_in_any_spelling_is_absence() {
    for text in [
        "level:",
        "level: ~",
        "level: null",
        "level: Null",
        "level: NULL",
        "{}",
        "",
        "# nothing",
        "---\n",
        "other: 1",
    ] {
        assert_eq!(read(text), Sample::default(), "{text:?}");
    }
}

#[test]
fn integers_are_read_as_yaml_1_1_writes_them() {
    for (spelling, expected) in [
        ("7", 7),
        ("+3", 3),
        ("010", 8),
        ("0o10", 8),
        ("0x10", 16),
        ("0b11", 3),
        ("1_000", 1000),
        ("2147483647", i32::MAX),
    ] {
        assert_eq!(
            read(&format!("level: {spelling}")).level,
            expected,
            "{spelling}"
        );
    }
    assert_eq!(read("item: {a: -010}").item.map(|item| item.a), Some(-8));
}

#[test]
fn what_is_no_whole_number_is_refused_with_its_value() {
    for (spelling, shown) in [
        ("1.5", "1.5"),
        ("1.0", "1.0"),
        ("1e3", "1000.0"),
        ("\"1\"", "\"1\""),
        ("yes", "true"),
        ("2147483648", "2147483648"),
        ("1:30", "\"1:30\""),
        (".inf", "\".inf\""),
        (".nan", "\".nan\""),
        ("99999999999999999999", "1e+20"),
        ("[1]", "a list"),
        ("{a: 1}", "a map"),
    ] {
        let error = refused(&format!("level: {spelling}"));
        let said = format!(
            "\n  level: {shown}: expected a whole number that fits in 32 bits, without quotes or a fraction (line 1, column 8)"
        );
        assert!(error.ends_with(&said), "{spelling}: {error}");
    }
}

#[test]
fn numbers_need_no_fraction_but_no_quotes_either() {
    for (spelling, expected) in [("0.6", 0.6), (".5", 0.5), ("1", 1.0), ("1e-1", 0.1)] {
        assert_eq!(read(&format!("share: {spelling}")).share, expected);
    }
    for spelling in ["'0.6'", ".nan", "-.inf", "1e999"] {
        let error = refused(&format!("share: {spelling}"));
        assert!(
            error.contains("expected a number, without quotes"),
            "{error}"
        );
    }
}

#[test]
fn a_bare_integer_may_be_a_text() {
    for (spelling, expected) in [
        ("abc", "abc"),
        ("123", "123"),
        ("010", "8"),
        ("'yes'", "yes"),
        ("\"1.0\"", "1.0"),
        ("''", ""),
    ] {
        assert_eq!(
            read(&format!("name: {spelling}")).name,
            expected,
            "{spelling}"
        );
        let labels = read(&format!("labels: {{a: {spelling}}}")).labels;
        assert_eq!(labels["a"], expected, "{spelling}");
    }
}

#[test]
fn what_only_go_reads_is_refused() {
    for (text, said) in [
        (
            "name: yes",
            "name: true: expected a string, in quotes (line 1",
        ),
        ("name: off", "name: false: expected a string, in quotes"),
        ("name: 1.5", "name: 1.5: expected a string, in quotes"),
        (
            "labels: {a: no}",
            "labels.a: false: expected a string, in quotes",
        ),
        ("level: 1.0", "level: 1.0: expected a whole number"),
        ("labels:\n  yes: a", "yes"),
        (
            "level: 1\n---\nlevel: 2",
            "a second document begins at line 3: write all keys into one",
        ),
        ("level: 1\n---\n- 2", "a second document begins at line 3"),
    ] {
        let error = refused(text);
        assert!(error.contains(said), "{text}: {error}");
    }
    assert_eq!(read("---\nlevel: 1\n...\n").level, 1);
}

#[test]
fn durations_are_in_gos_syntax() {
    for (spelling, expected) in [
        ("1h15m30.5s", 4_530_500_000_000),
        (".5s", 500_000_000),
        ("1.5h", 5_400_000_000_000),
        ("250ms", 250_000_000),
        ("10us", 10_000),
        ("10µs", 10_000),
        ("\"0\"", 0),
        ("0", 0),
    ] {
        let wait = read(&format!("wait: {spelling}")).wait;
        assert_eq!(wait.as_nanos(), expected, "{spelling}");
    }
    for spelling in ["30", "1.5", "-5s", "\"30\"", "1 s", "1d", "yes", "[30s]"] {
        let error = refused(&format!("wait: {spelling}"));
        assert!(
            error.contains("expected a duration like \"30s\""),
            "{error}"
        );
    }
}

#[test]
fn keys_match_in_any_case_and_the_last_in_byte_order_wins() {
    for (text, level) in [
        ("LEVEL: 1", 1),
        ("level: 2\nLEVEL: 1", 2),
        ("LEVEL: 1\nlevel: 2", 2),
        ("level: 1\nLEVEL: 3", 1),
        ("Level: 1\nlEVEL: 3", 3),
        ("le_vel: 1", 7),
        ("level: 1\nlevel: 2", 2),
    ] {
        assert_eq!(read(text).level, level, "{text}");
    }
    assert_eq!(
        read("labels: {A: x, a: z}").labels.len(),
        2,
        "names are data"
    );
}

#[test]
fn anchors_and_merge_keys_are_resolved() {
    assert_eq!(read("item: {a: &a 5}\nlevel: *a").level, 5);
    let merged = read("list: [&b {a: 7, b: x}]\nitem:\n  <<: *b\n  b: z");
    let item = Item {
        a: 7,
        b: "z".to_owned(),
    };
    assert_eq!(merged.item, Some(item));
}

#[test]
fn all_errors_are_reported_together_under_their_paths() {
    let text = "list:\n- {a: x}\n- {a: 1, B: [c]}\nitem: word\nshare: 2\nwait: 5\nlevel: -1\nisOn: 1\nlabels: 5\n";
    let said = "file: 8 errors
  list[0].a: \"x\": expected a whole number that fits in 32 bits, without quotes or a fraction (line 2, column 7)
  list[1].b: a list: expected a string, in quotes (line 3, column 13)
  item: \"word\": expected an object (line 4, column 7)
  share: 2: expected a share of at most 1 (line 5, column 8)
  wait: 5: expected a duration like \"30s\" or \"1h15m\", not negative (units: ns, us, ms, s, m, h) (line 6, column 7)
  level: -1: expected a level of at least 0 (line 7, column 8)
  isOn: 1: expected true or false (line 8, column 7)
  labels: 5: expected an object (line 9, column 9)";
    assert_eq!(refused(text), said);
}

#[test]
fn of_a_list_that_holds_a_wrong_type_the_first_is_reported() {
    assert_eq!(refused("list: [1, 2]\nlevel: -1").lines().count(), 2);
}

#[test]
fn a_list_is_no_object() {
    for text in ["item: [1, b]", "list: [[1, b]]", "[1, 2]"] {
        let error = refused(text);
        assert!(error.contains(": a list: expected an object"), "{error}");
    }
}

#[test]
fn there_is_an_end_to_wrong_types() {
    let items: String = (0..200).map(|_| "- {a: x}\n").collect();
    let error = load(&format!("list:\n{items}")).expect_err("200 wrong types");
    assert_eq!(error.fields().len(), 100);
}

#[test]
fn unknown_keys_are_ignored_with_a_warning() {
    let loaded = load("{level: 1, typo: {level: 5}, oldname: x, item: {a: 1}}").expect("it loads");
    assert_eq!(
        loaded.warnings,
        [
            "oldname: a key of old, which name replaced, ignored (line 1, column 39)",
            "typo: unknown key, ignored (line 1, column 18)",
        ]
    );
}

#[test]
fn an_unknown_key_is_an_error_where_it_must_not_be() {
    let error = load("item: {a: 1, c: 2}\nother: 1").expect_err("an unknown key");
    assert_eq!(
        error.to_string(),
        "file: 1 error\n  item.c: 2: expected a or b as a key (line 1, column 17)"
    );
    assert_eq!(error.warnings().len(), 1, "no warning of what is an error");
}

#[test]
fn a_document_that_is_no_object_is_refused() {
    for (text, shown) in [
        ("just words", "\"just words\""),
        ("[1, 2]", "a list"),
        ("5", "5"),
    ] {
        let said = format!("the file: {shown}: expected an object");
        assert!(refused(text).contains(&said), "{text}");
    }
}

#[test]
fn a_manifest_is_no_config_file() {
    for (text, kind) in [
        (
            "apiVersion: v1\nkind: ConfigMap\ndata:\n  dep-config.yaml: |\n    level: 1\n",
            "ConfigMap",
        ),
        (
            "{\"kind\": \"Secret\", \"apiVersion\": \"v1\", \"stringData\": {\"a\": \"level: 1\"}}",
            "Secret",
        ),
        ("kind: List\nitems: []\n---\nkind: ConfigMap\n", "List"),
    ] {
        let said = format!(
            "file: it is the manifest of a \"{kind}\": take the text below a key of its `data`"
        );
        assert_eq!(refused(text), said);
    }
}

#[test]
fn what_is_no_yaml_is_refused_with_its_place() {
    for text in [
        "x:\n\t- 1\n\t- 2",
        "y:\n\tx: 1",
        "x:\n  a: 1\n\tb: 2",
        "x: [\n\t1]",
        "x: [",
        "x: 'a",
        "x: *nowhere",
        "x: 1\n y: 2",
        "1: a",
        "[a]: 1",
    ] {
        let error = refused(text);
        assert!(error.starts_with("file: "), "{text}: {error}");
        assert!(error.contains(" at line "), "{text}: {error}");
    }
}

#[test]
fn an_alias_bomb_is_refused_quickly() {
    let mut yaml = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let items = vec![format!("*a{}", level - 1); 10].join(",");
        yaml += &format!("a{level}: &a{level} [{items}]\n");
    }
    assert!(load(&yaml).is_err());
}

#[test]
fn too_deep_and_too_large_documents_are_refused() {
    let deep = format!("x: {}{}", "[".repeat(5000), "]".repeat(5000));
    assert!(load(&deep).is_err());
    let many: String = (0..20_000).map(|n| format!("k{n}: 1\n")).collect();
    assert!(load(&many).is_err());
    let large = format!("x: {}", "a".repeat(MAX_BYTES as usize));
    assert!(refused(&large).contains("larger than 1048576 bytes"));
    let largest = format!("x: {}", "a".repeat(MAX_BYTES as usize - 3));
    assert!(load(&largest).is_ok());
}

#[test]
fn keys_and_values_are_on_one_line_and_not_of_any_length() {
    let warnings = |text: &str| load(text).expect(text).warnings;
    assert_eq!(
        warnings("\"a\\nb\\e[31m\": 1"),
        ["a b [31m: unknown key, ignored (line 1, column 15)"]
    );
    assert!(
        warnings(&format!("{}: 1", "k".repeat(1000)))[0]
            .starts_with(&format!("{}...: unknown key", "k".repeat(200)))
    );
    let error = refused(&format!("level: {}", "é".repeat(500)));
    assert!(
        error.contains(&format!("\"{}...", "é".repeat(199))),
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
        .and_then(|contents| contents.load(&Sample::default(), &[], |_, _| ()))
        .expect_err("no text")
        .to_string();
    assert_eq!(error, format!("{}: it is not UTF-8 text", binary.display()));

    assert!(
        Contents::of(folder.path())
            .expect_err("a folder")
            .to_string()
            .contains("directory")
    );
}

proptest! {
    #[test]
    fn no_document_makes_it_panic(text in "[-:\\[\\]{}&*!|>'\"%@#,? \n\ta-c0-9~.<_]{0,200}", key in "name|level|share|wait|list|labels|item") {
        let _ = load(&text);
        let _ = load(&format!("{key}: {text}"));
    }

    #[test]
    fn an_integer_is_read_as_written(number in 0..=i32::MAX) {
        prop_assert_eq!(read(&format!("level: {number}")).level, number);
    }
}
