//! That scalars mean what they mean to Go, random files show (`kind-tests/readers`).

use std::collections::BTreeMap;
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
    let known = Sample {
        list: vec![Item::default()],
        labels: BTreeMap::from([Default::default()]),
        item: Some(Item::default()),
        ..Sample::default()
    };
    let former = [("oldName", "a key of old, which name replaced")];
    Contents::from(text).load(&known, &former, |sample, found| {
        found.require("level", sample.level >= 0, "a level of at least 0");
        found.require("share", sample.share <= 1.0, "a share of at most 1");
        sample
    })
}

fn read(text: &str) -> Sample {
    let loaded = load(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    loaded.config
}

fn refused(text: &str) -> String {
    load(text).expect_err(text).to_string()
}

/// Fails unless a field has this value, in JSON, with each of these spellings.
#[track_caller]
fn check_read(field: &str, spellings: &[(&str, &str)]) {
    for (spelling, expected) in spellings {
        let read = read(&format!("{field}: {spelling}"));
        let read = serde_json::to_value(read).expect("JSON");
        assert_eq!(read[field].to_string(), *expected, "{field}: {spelling}");
    }
}

/// Fails unless each text is refused with these words.
#[track_caller]
fn check_refused(texts: &[(&str, &str)]) {
    for (text, said) in texts {
        let error = refused(text);
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn yaml_1_1_words_are_booleans() {
    for word in ["y", "Yes", "on", "On", "ON", "true", "True", "TRUE"] {
        check_read("isOn", &[(word, "true")]);
    }
    for word in ["n", "No", "off", "Off", "OFF", "false", "False", "FALSE"] {
        check_read("isOn", &[(word, "false")]);
    }
    check_refused(&[
        ("isOn: 'yes'", "isOn: \"yes\": expected true or false"),
        ("isOn: 1", "isOn: 1: expected true or false"),
    ]);
}

#[test]
fn what_is_no_number_is_refused_with_its_value() {
    for (spelling, shown) in [
        ("1.5", "1.5"),
        ("\"1\"", "\"1\""),
        ("2147483648", "2147483648"),
        ("[1]", "a list"),
    ] {
        let said = format!(
            "\n  level: {shown}: expected a whole number that fits in 32 bits, without quotes or a fraction (line 1, column 8)"
        );
        check_refused(&[(&format!("level: {spelling}"), &said)]);
    }
    for spelling in ["'0.6'", ".nan", "-.inf", "1e999"] {
        check_refused(&[(
            &format!("share: {spelling}"),
            "expected a number, without quotes",
        )]);
    }
}

#[test]
fn what_only_go_reads_is_refused() {
    check_refused(&[
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
        ("labels:\n  yes: a", "yes"),
        (
            "level: 1\n---\nlevel: 2",
            "a second document begins at line 3: write all keys into one",
        ),
        ("just words", "the file: \"just words\": expected an object"),
        ("item: [1, b]", "item: a list: expected an object"),
    ]);
    assert_eq!(read("---\nlevel: 1\n...\n").level, 1);
}

#[test]
fn durations_are_in_gos_syntax() {
    check_read(
        "wait",
        &[
            ("1h15m30.5s", "\"1h15m30.5s\""),
            (".5s", "\"500ms\""),
            ("10us", "\"10µs\""),
            ("\"0\"", "\"0s\""),
            ("0", "\"0s\""),
        ],
    );
    for spelling in ["30", "1.5", "-5s", "\"30\"", "1 s", "1d", "yes", "[30s]"] {
        check_refused(&[(
            &format!("wait: {spelling}"),
            "expected a duration like \"30s\"",
        )]);
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
    check_read("labels", &[("{A: x, a: z}", r#"{"A":"x","a":"z"}"#)]);
}

#[test]
fn all_errors_are_reported_together_under_their_paths() {
    let text = "list:\n- {a: x}\n- {a: 1, B: [c]}\nitem: word\nshare: 2\nwait: 5\nlevel: -1\nisOn: 1\nlabels: 5\n";
    let said = "config: 8 errors
  list[0].a: \"x\": expected a whole number that fits in 32 bits, without quotes or a fraction (line 2, column 7)
  list[1].b: a list: expected a string, in quotes (line 3, column 13)
  item: \"word\": expected an object (line 4, column 7)
  share: 2: expected a share of at most 1 (line 5, column 8)
  wait: 5: expected a duration like \"30s\" or \"1h15m\", not negative (units: ns, us, ms, s, m, h) (line 6, column 7)
  level: -1: expected a level of at least 0 (line 7, column 8)
  isOn: 1: expected true or false (line 8, column 7)
  labels: 5: expected an object (line 9, column 9)";
    assert_eq!(refused(text), said);
    // Of a list that holds a wrong type the first is reported.
    assert_eq!(refused("list: [1, 2]\nlevel: -1").lines().count(), 2);
    let items = "- {a: x}\n".repeat(200);
    let error = load(&format!("list:\n{items}")).expect_err("200 wrong types");
    assert_eq!(error.fields().len(), 100);
}

#[test]
fn unknown_keys_are_ignored_with_a_warning() {
    let loaded = load("{level: 1, typo: {level: 5}, oldname: x, item: {a: 1}}").expect("it loads");
    let said = [
        "oldname: a key of old, which name replaced, ignored (line 1, column 39)",
        "typo: unknown key, ignored (line 1, column 18)",
    ];
    assert_eq!(loaded.warnings, said);
    // Where they must not be they are errors.
    let error = load("item: {a: 1, c: 2}\nother: 1").expect_err("an unknown key");
    let said = "config: 1 error\n  item.c: 2: expected a or b as a key (line 1, column 17)";
    assert_eq!(
        (error.to_string().as_str(), error.warnings().len()),
        (said, 1)
    );
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
            "config: it is the manifest of a \"{kind}\": take the text below a key of its `data`"
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
        check_refused(&[(text, "config: "), (text, " at line ")]);
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
    let large = |length| format!("x: {}", "a".repeat(length));
    check_refused(&[(&large(MAX_BYTES as usize), "larger than 1048576 bytes")]);
    assert!(load(&large(MAX_BYTES as usize - 3)).is_ok());
}

#[test]
fn keys_and_values_are_on_one_line_and_not_of_any_length() {
    let long = format!("{}: 1", "k".repeat(1000));
    let cut = format!(
        "{}...: unknown key, ignored (line 1, column 1003)",
        "k".repeat(200)
    );
    for (text, said) in [
        (
            "\"a\\nb\\e[31m\": 1",
            "a b [31m: unknown key, ignored (line 1, column 15)",
        ),
        (&long, &cut),
    ] {
        assert_eq!(load(text).expect(text).warnings, [said]);
    }
    let value = format!("level: {}", "é".repeat(500));
    check_refused(&[(&value, &format!("\"{}...", "é".repeat(199)))]);
}

proptest! {
    #[test]
    fn no_document_makes_it_panic(text in "[-:\\[\\]{}&*!|>'\"%@#,? \n\ta-c0-9~.<_]{0,200}", key in "name|level|share|wait|list|labels|item") {
        let _ = load(&text);
        let _ = load(&format!("{key}: {text}"));
    }
}
