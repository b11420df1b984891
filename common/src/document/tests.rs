//! That scalars mean what they mean to Go, and that no text makes it panic, random files show
//! (`kind-tests/readers`).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::*;

/// Has a field of each type.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
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

/// What is read or what is wrong, and the warnings.
fn outcome(text: &str) -> String {
    let (said, warnings) = match load(text) {
        Ok(loaded) => (json!(loaded.config).to_string(), loaded.warnings),
        Err(error) => (error.to_string(), error.warnings().to_vec()),
    };
    format!("{said}\n{}\n", warnings.join("\n"))
}

/// Fails unless this is in what comes of each text.
#[track_caller]
fn check(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        let said = outcome(text);
        assert!(said.contains(expected), "{text}: {said}");
    }
}

#[test]
fn yaml_1_1_words_are_booleans() {
    for word in ["y", "Yes", "on", "On", "ON", "true", "True", "TRUE"] {
        check(&[(&format!("isOn: {word}"), r#""isOn":true"#)]);
    }
    for word in ["n", "No", "off", "Off", "OFF", "false", "False", "FALSE"] {
        check(&[(&format!("isOn: {word}"), r#""isOn":false"#)]);
    }
    check(&[
        (
            "isOn: 'yes'",
            "isOn: \"yes\": expected true or false (line 1, column 7)",
        ),
        (
            "isOn: 1",
            "isOn: 1: expected true or false (line 1, column 7)",
        ),
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
        let whole = "expected a whole number that fits in 32 bits, without quotes or a fraction";
        let said = format!("level: {shown}: {whole} (line 1, column 8)");
        check(&[(&format!("level: {spelling}"), &said)]);
    }
    for spelling in ["'0.6'", ".nan", "-.inf", "1e999"] {
        check(&[(
            &format!("share: {spelling}"),
            "expected a number, without quotes",
        )]);
    }
}

#[test]
fn what_only_go_reads_is_refused() {
    check(&[
        ("name: 7", r#""name":"7""#),
        (
            "name: yes",
            "name: true: expected a string, in quotes (line 1, column 7)",
        ),
        (
            "name: off",
            "name: false: expected a string, in quotes (line 1, column 7)",
        ),
        (
            "name: 1.5",
            "name: 1.5: expected a string, in quotes (line 1, column 7)",
        ),
        (
            "labels: {a: no}",
            "labels.a: false: expected a string, in quotes (line 1, column 13)",
        ),
        ("labels:\n  yes: a", "config: "),
        (
            "level: 1\n---\nlevel: 2",
            "config: a second document begins at line 3: write all keys into one",
        ),
        (
            "just words",
            "the file: \"just words\": expected an object (line 1, column 1)",
        ),
        (
            "item: [1, b]",
            "item: a list: expected an object (line 1, column 7)",
        ),
        ("---\nlevel: 1\n...\n", r#""level":1,"#),
    ]);
}

#[test]
fn durations_are_in_gos_syntax() {
    check(&[
        ("wait: 1h15m30.5s", r#""wait":"4530.5s""#),
        ("wait: .5s", r#""wait":"500ms""#),
        ("wait: 10us", r#""wait":"10µs""#),
        ("wait: \"0\"", r#""wait":"0s""#),
        ("wait: 0", r#""wait":"0s""#),
    ]);
    for spelling in ["30", "1.5", "-5s", "\"30\"", "1 s", "1d", "yes", "[30s]"] {
        check(&[(
            &format!("wait: {spelling}"),
            "expected a duration like \"30s\"",
        )]);
    }
}

#[test]
fn keys_match_in_any_case_and_the_last_in_byte_order_wins() {
    check(&[
        ("LEVEL: 1", r#""level":1,"#),
        ("level: 2\nLEVEL: 1", r#""level":2,"#),
        ("LEVEL: 1\nlevel: 2", r#""level":2,"#),
        ("level: 1\nLEVEL: 3", r#""level":1,"#),
        ("Level: 1\nlEVEL: 3", r#""level":3,"#),
        (
            "le_vel: 1",
            "le_vel: unknown key, ignored (line 1, column 9)",
        ),
        ("level: 1\nlevel: 2", r#""level":2,"#),
        ("level: null", r#""level":0,"#),
        ("labels: {A: x, a: z}", r#""labels":{"A":"x","a":"z"}"#),
    ]);
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
    // Of a list that holds a wrong type the first is reported.
    check(&[
        (text, said),
        (
            "list: [1, 2]\nlevel: -1",
            "list[0]: 1: expected an object (line 1, column 8)",
        ),
    ]);
    let items = "- {a: x}\n".repeat(200);
    let error = load(&format!("list:\n{items}")).expect_err("200 wrong types");
    assert_eq!(error.fields().len(), 100);
}

#[test]
fn unknown_keys_are_ignored_with_a_warning() {
    let long = "k".repeat(1000);
    let cut = format!(
        "{}...: unknown key, ignored (line 1, column 1003)",
        &long[..200]
    );
    check(&[
        (
            "{level: 1, typo: {level: 5}, oldname: x, item: {a: 1}}",
            "}\noldname: a key of old, which name replaced, ignored (line 1, column 39)\n\
             typo: unknown key, ignored (line 1, column 18)\n",
        ),
        // Where they must not be they are errors.
        (
            "item: {a: 1, c: 2}\nother: 1",
            "item.c: 2: expected a or b as a key (line 1, column 17)\nother: unknown key, ignored (line 2, column 8)",
        ),
        // They are on one line and not of any length, and so are values.
        (
            "\"a\\nb\\e[31m\": 1",
            "a b [31m: unknown key, ignored (line 1, column 15)",
        ),
        (&format!("{long}: 1"), &cut),
        (
            &format!("level: {}", "é".repeat(500)),
            &format!("level: \"{}...:", "é".repeat(199)),
        ),
    ]);
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
        let advice = "take the text below a key of its `data`";
        check(&[(
            text,
            &format!("config: it is the manifest of a \"{kind}\": {advice}"),
        )]);
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
        check(&[(text, "config: "), (text, " at line ")]);
    }
}

#[test]
fn an_alias_bomb_is_refused_quickly() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let items = vec![format!("*a{}", level - 1); 10].join(",");
        bomb += &format!("a{level}: &a{level} [{items}]\n");
    }
    let deep = format!("x: {}{}", "[".repeat(5000), "]".repeat(5000));
    let many: String = (0..20_000).map(|n| format!("k{n}: 1\n")).collect();
    let large = "a".repeat(MAX_BYTES as usize - 3);
    for text in [bomb, deep, many] {
        load(&text).expect_err("too much");
    }
    check(&[
        (
            &format!("x: {large}a"),
            "config: it is larger than 1048576 bytes",
        ),
        (
            &format!("x: {large}"),
            "x: unknown key, ignored (line 1, column 4)",
        ),
    ]);
}
