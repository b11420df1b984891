//! That selectors mean what they mean to an API server, random files show (`kind-tests/readers`).

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use common::document::load;

use super::*;

/// A config with these lines and one Service with these selectors.
fn text(lines: &str, selectors: &str) -> String {
    format!("{lines}\nservicesAndDependantSelectors: {{api: {{podSelectors: {selectors}}}}}")
}

fn parse(text: &str) -> Loaded<Config> {
    super::parse(text).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
}

/// Fails unless each line has one error, which begins so. `~` stands for the path to the selectors.
fn check_errors(rows: &str, text: impl Fn(&str) -> String) {
    let path = "servicesAndDependantSelectors.api.podSelectors";
    for (line, said) in rows.lines().filter_map(|row| row.split_once(" => ")) {
        let text = text(line.trim());
        let errors = super::parse(&text).expect_err(&text);
        let said = said.replace('~', path);
        assert!(
            errors.len() == 1 && errors[0].starts_with(&said),
            "{text}: {errors:#?}"
        );
    }
}

#[test]
fn gardeners_config_loads_as_rendered() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/weeder.yaml");
    let Loaded { config, warnings } = load(&path, super::parse).expect("the example");
    assert_eq!(warnings, [""; 0]);
    assert_eq!(config.watch_duration, Duration::from_secs(300));
    assert_eq!(config.max_deletions_per_owner, None);
    for (role, expected) in [
        ("apiserver", &["etcd-main-client"][..]),
        ("main", &[]),
        ("controller-manager", &["kube-apiserver"]),
    ] {
        let labels = [("gardener.cloud/role", "controlplane"), ("role", role)];
        let labels = labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        let mut services = config.services.clone();
        services.retain(|_, dependants| dependants.selectors().any(|one| one.matches(&labels)));
        let names: Vec<_> = services.keys().map(|name| &**name).collect();
        assert_eq!(names, expected, "{role}");
    }
}

#[test]
fn what_is_left_out_has_its_default() {
    for (lines, seconds, limit) in [
        ("", 300.0, None),
        ("watchDuration: null\nmaxDeletionsPerOwner: ~", 300.0, None),
        (
            "watchDuration: 1m0.5s\nmaxDeletionsPerOwner: 3",
            60.5,
            Some(3),
        ),
    ] {
        let config = parse(&text(lines, "[{matchLabels: {a: b}}]")).config;
        let read = (
            config.watch_duration.as_secs_f64(),
            config.max_deletions_per_owner.map(NonZeroU32::get),
        );
        assert_eq!(read, (seconds, limit));
    }
}

#[test]
fn wrong_values_are_named() {
    let rows = r#"
watchDuration: 0s => watchDuration: "0s": expected a duration above 0
watchDuration: -5m => watchDuration: "-5m": expected a duration like "30s" or "1h15m", not negative
watchDuration: 300 => watchDuration: "300": expected a duration like
maxDeletionsPerOwner: 0 => maxDeletionsPerOwner: "maxDeletionsPerOwner: 0": invalid value: integer `0`, expected a nonzero u32 at line 1, column 1
maxDeletionsPerOwner: -1 => maxDeletionsPerOwner: "-1": invalid u32
"#;
    check_errors(rows, |line| text(line, "[{matchLabels: {a: b}}]"));
    // Without Services or selectors there is nothing to do.
    let rows = r#"
watchDuration: 5m => servicesAndDependantSelectors: {}: expected at least one Service
servicesAndDependantSelectors: {} => servicesAndDependantSelectors: {}: expected at least one Service
servicesAndDependantSelectors: null => servicesAndDependantSelectors: {}: expected
servicesAndDependantSelectors: {api: {}, etcd: {podSelectors: [{}]}} => ~: []: expected a list of at least one label selector
servicesAndDependantSelectors: {api: null, etcd: {podSelectors: [{}]}} => ~: []: expected a list of at least one label selector
servicesAndDependantSelectors: {api: true, etcd: {podSelectors: [{}]}} => servicesAndDependantSelectors.api: "true, etcd: {podSelectors: [{}]}}": expected mapping start at line 1, column 38
"#;
    check_errors(rows, str::to_owned);
    let valid =
        "expected label keys, In and NotIn with label values, Exists and DoesNotExist without";
    let rows = r#"
[] => ~: []: expected a list of at least one label selector
null => ~: []: expected
{} => ~: "{}}}": expected sequence start at line 2, column 53
[{}, {matchExpressions: [{key: role, operator: In}]}] => ~[1]: {"matchExpressions":[{"key":"role","operator":"In","values":[]}],"matchLabels":{}}: VALID
[{}, {matchExpressions: [{key: role, operator: In, values: []}]}] => ~[1]: {"matchExpressions":[{"key":"role","operator":"In","values":[]}],"matchLabels":{}}: VALID
[{}, {matchExpressions: [{key: role, operator: Exists, values: [a]}]}] => ~[1]: {"matchExpressions":[{"key":"role","operator":"Exists","values":["a"]}],"matchLabels":{}}: VALID
[{matchExpressions: [{key: role, operator: in, values: [a]}]}] => ~[0].matchExpressions[0].operator: "in, values: [a]}]}]}}": unknown variant `in`
[{matchExpressions: [{key: role, operator: '', values: [a]}]}] => ~[0].matchExpressions[0].operator: "'', values: [a]}]}]}}": unknown variant ``
[{matchExpressions: [{key: role, values: [a]}]}] => ~[0]: {"matchExpressions":[{"key":"role","operator":"","values":["a"]}],"matchLabels":{}}: VALID
[{matchExpressions: [{key: role, operator: null}]}] => ~[0]: {"matchExpressions":[{"key":"role","operator":"","values":[]}],"matchLabels":{}}: VALID
[{matchExpressions: [{key: a b, operator: Exists}]}] => ~[0]: {"matchExpressions":[{"key":"a b","operator":"Exists","values":[]}],"matchLabels":{}}: VALID
[{matchExpressions: [{operator: Exists}]}] => ~[0]: {"matchExpressions":[{"key":"","operator":"Exists","values":[]}],"matchLabels":{}}: VALID
[{matchLabels: {role: 'b c'}}] => ~[0]: {"matchExpressions":[],"matchLabels":{"role":"b c"}}: VALID
"#;
    check_errors(&rows.replace("VALID", valid), |selectors| {
        text("", selectors)
    });
}

#[test]
fn an_unknown_key_in_a_selector_is_an_error() {
    let rows = "
[{matchLabel: {a: b}}] => ~[0].matchLabel: \"matchLabel: {a: b}}]}}\": unknown field `matchLabel`, expected one of matchLabels, matchExpressions at line 2, column 55
[{matchLabels: {a: b}, matchExpression: null}] => ~[0].matchExpression: 
[{matchExpressions: [{key: a, operator: Exists, value: [b]}]}] => ~[0].matchExpressions[0].value: \"value: [b]}]}]}}\": unknown field `value`
";
    check_errors(rows, |selectors| text("", selectors));
}

#[test]
fn a_selector_that_comes_out_empty_is_a_warning() {
    let empty = "it is empty, so it selects every pod of the namespace";
    for (selectors, said) in [
        ("[{matchLabels: {a: b}}, {}]", &*format!("[1]: {empty}")),
        (
            "[{matchLabels: null, matchExpressions: []}]",
            &format!("[0]: {empty}"),
        ),
    ] {
        let said = format!("servicesAndDependantSelectors.api.podSelectors{said}");
        assert_eq!(parse(&text("", selectors)).warnings, [said]);
    }
}

#[test]
fn a_selector_that_is_null_is_no_empty_one() {
    let Loaded { config, warnings } = parse(&text("", "[null, {matchLabels: {a: b}}]"));
    assert_eq!(warnings, [""; 0]);
    let selectors = &config.services["api"].pod_selectors;
    assert_eq!(
        [selectors[0].is_none(), selectors[1].is_none()],
        [true, false]
    );
}
