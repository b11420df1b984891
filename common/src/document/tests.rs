//! That no text makes it panic, random files show (`kind-tests/readers`).

use std::time::Duration;

use go_compat::duration::Seconds;
use serde::Deserialize;

use super::*;

/// Has a key of each type.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sample {
    name: Option<String>,
    is_on: Option<bool>,
    level: Option<i32>,
    share: Option<f64>,
    #[serde(default = "Seconds::<30>::value", with = "Seconds::<30>")]
    wait: Duration,
    list: Option<Vec<Item>>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Item {
    a: Option<i32>,
}

fn read(text: &str) -> Result<Loaded<Sample>, Problems> {
    parse(text, |sample: Sample, found| {
        let (level, share) = (sample.level, sample.share.unwrap_or_default());
        found.require(
            "level",
            level.is_none_or(|level| level >= 0),
            "a level of at least 0",
        );
        found.require("share", share <= 1.0, "a share of at most 1");
        for (index, item) in sample.list.iter().flatten().enumerate() {
            found.require(&format!("list[{index}].a"), item.a.is_some(), "a number");
        }
        sample
    })
}

/// Fails unless the text is read and this is in it as JSON, or in its warnings.
#[track_caller]
fn holds(text: &str, expected: &str) {
    let loaded = read(text).unwrap_or_else(|problems| panic!("{text}: {problems:?}"));
    let config = serde_json::to_string(&loaded.config).unwrap();
    let said = format!("{config} {}", loaded.warnings.join(" "));
    assert!(said.contains(expected), "{text}: {said}");
}

/// Fails unless these are the problems of a text.
#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    assert_eq!(read(text).expect_err(text), expected, "{text}");
}

#[test]
fn yaml_1_1_words_are_booleans() {
    for word in ["y", "Yes", "on", "On", "ON", "true", "True", "TRUE"] {
        holds(&format!("isOn: {word}"), r#""isOn":true"#);
    }
    for word in ["n", "No", "off", "Off", "OFF", "false", "False", "FALSE"] {
        holds(&format!("isOn: {word}"), r#""isOn":false"#);
    }
    refused(
        "isOn: 1",
        &[r#"isOn: "1": invalid boolean at line 1, column 7"#],
    );
}

#[test]
fn an_octal_is_one_and_null_is_what_is_missing() {
    holds("level: 010", r#""level":8,"#);
    holds("level: 0x10", r#""level":16,"#);
    for nothing in ["", "wait: null", "wait: ~", "wait:\nname:\nlist: null"] {
        holds(
            nothing,
            r#"{"name":null,"isOn":null,"level":null,"share":null,"wait":"30s","list":null}"#,
        );
    }
    // Of a key that is there twice the last one counts.
    holds("level: a\nlevel: 2", r#""level":2,"#);
}

#[test]
fn durations_are_in_gos_syntax() {
    for (spelling, read) in [
        ("1h15m30.5s", "4530.5s"),
        (".5s", "500ms"),
        ("10us", "10µs"),
        ("\"0\"", "0s"),
    ] {
        holds(&format!("wait: {spelling}"), &format!(r#""wait":"{read}""#));
    }
    for spelling in [
        "30", "0", "1.5", "-5s", "\"30\"", "1 s", "1d", "yes", "[30s]",
    ] {
        let problem = format!(
            "wait: {spelling:?}: expected a duration like \"30s\" or \"1h15m\", not negative \
             (units: ns, us, ms, s, m, h) at line 2, column 7"
        );
        refused(&format!("\nwait: {spelling}"), &[&problem]);
    }
}

#[test]
fn first_value_of_a_wrong_type_is_named_with_its_place() {
    for (text, problem) in [
        (
            "level: 1.5",
            r#"level: "1.5": invalid i32 at line 1, column 8"#,
        ),
        (
            "level: 1.0",
            r#"level: "1.0": invalid i32 at line 1, column 8"#,
        ),
        (
            "level: 2147483648",
            r#"level: "2147483648": invalid i32 at line 1, column 8"#,
        ),
        (
            "level: [1]",
            r#"level: "[1]": expected string scalar at line 1, column 8"#,
        ),
        (
            "share: 1e999",
            r#"share: "1e999": invalid floating point at line 1, column 8"#,
        ),
        (
            "list:\n- a: 1\n- a: x # not a number\n",
            r#"list[1].a: "x # not a number": invalid i32 at line 3, column 6"#,
        ),
        (
            "list: level:0",
            r#"list: "level:0": expected sequence start at line 1, column 7"#,
        ),
        (
            "[1]",
            r#".: "[1]": expected mapping start at line 1, column 1"#,
        ),
    ] {
        refused(text, &[problem]);
    }
    let long = format!("level: {}", "é".repeat(500));
    let shown = format!(
        "level: {:?}: invalid i32 at line 1, column 8",
        "é".repeat(60)
    );
    refused(&long, &[&shown]);
}

#[test]
fn what_only_go_reads_is_refused() {
    for spelling in ["7", "yes", "off", "1.5", "010"] {
        let problem = format!("name: {spelling:?}: value requires quoting at line 1, column 7");
        refused(&format!("name: {spelling}"), &[&problem]);
        holds(
            &format!("name: '{spelling}'"),
            &format!(r#""name":"{spelling}""#),
        );
    }
    let second = "only single YAML document expected but multiple found at line 3, column 1";
    refused(
        "level: 1\n---\nlevel: 2",
        &[&format!(r#".: "level: 2": {second}"#)],
    );
}

#[test]
fn all_that_is_out_of_range_is_reported_together() {
    let text = "list: [{a: 1}, {}]\nlevle: 1\nlevel: -1\nshare: .inf";
    refused(
        text,
        &[
            "level: -1: expected a level of at least 0",
            "share: null: expected a share of at most 1",
            "list[1].a: null: expected a number",
            "levle: unknown key, ignored",
        ],
    );
}

#[test]
fn unknown_keys_are_ignored_with_a_warning() {
    holds(
        "level: 1\nother: {level: 5}",
        " other: unknown key, ignored",
    );
    holds("Level: 1", r#""level":null"#);
    holds("Level: 1", " Level: unknown key, ignored");
    // They are on one line and not of any length.
    holds("\"a\\nb\\e[31m\": 1", " a b [31m: unknown key, ignored");
    let long = "k".repeat(1000);
    assert_eq!(
        read(&format!("{long}: 1")).unwrap().warnings,
        [&long[..500]]
    );
    // Where they must not be they are errors.
    let problem =
        r#"list[1].b: "b: 2}]": unknown field `b`, expected one of a at line 1, column 17"#;
    refused("list: [{a: 1}, {b: 2}]", &[problem]);
}

#[test]
fn what_is_no_yaml_is_refused_with_its_place() {
    for text in [
        "x:\n\t- 1\n\t- 2",
        "y:\n\tx: 1",
        "x:\n  a: 1\n\tb: 2",
        "x: [",
        "x: 'a",
        "x: *nowhere",
        "x: 1\n y: 2",
        "1: a",
        "[a]: 1",
        "just words",
    ] {
        let problems = read(text).expect_err(text);
        assert!(
            problems.len() == 1 && problems[0].contains(" at line "),
            "{problems:?}"
        );
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
    let many: String = (0..300_000).map(|n| format!("k{n}: 1\n")).collect();
    for text in [bomb, deep, many] {
        read(&text).expect_err("too much");
    }
}

#[test]
fn an_error_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dep-config.yaml");
    for (text, said) in [
        (None, "No such file or directory (os error 2)"),
        (
            Some("level: -1\nshare: 2"),
            "level: -1: expected a level of at least 0; share: 2.0: expected a share of at most 1",
        ),
    ] {
        text.iter()
            .for_each(|text| std::fs::write(&path, text).unwrap());
        let error = load(&path, read).expect_err("refused").to_string();
        assert_eq!(error, format!("{}: {said}", path.display()));
    }
}
