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
fn scalars_are_those_of_yaml_1_1() {
    for (text, read) in [
        ("isOn: Yes", r#""isOn":true"#),
        ("isOn: off", r#""isOn":false"#),
        ("level: 010", r#""level":8,"#),
        ("level: 0x10", r#""level":16,"#),
        ("wait: 1h15m30.5s", r#""wait":"4530.5s""#),
        // Of a key that is there twice the last one counts.
        ("level: a\nlevel: 2", r#""level":2,"#),
    ] {
        holds(text, read);
    }
    for nothing in ["", "wait: ~", "wait:\nname:\nlist: null"] {
        let defaults =
            r#"{"name":null,"isOn":null,"level":null,"share":null,"wait":"30s","list":null}"#;
        holds(nothing, defaults);
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
            "isOn: 1",
            r#"isOn: "1": invalid boolean at line 1, column 7"#,
        ),
        (
            "\nwait: 30",
            "wait: \"30\": expected a duration like \"30s\" or \"1h15m\", not negative \
             (units: ns, us, ms, s, m, h) at line 2, column 7",
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
    for spelling in ["7", "yes"] {
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
    for text in ["y:\n\tx: 1", "x: [", "x: *nowhere", "just words"] {
        let problems = read(text).expect_err(text);
        assert!(
            problems.len() == 1 && problems[0].contains(" at line "),
            "{problems:?}"
        );
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
