//! That selectors mean what they mean to an API server, random files show (`kind-tests/readers`).

use std::path::Path;
use std::time::Duration;

use common::document::FieldError;

use super::*;

/// A config with these lines and one Service with these selectors.
fn text(lines: &str, selectors: &str) -> String {
    format!("{lines}\nservicesAndDependantSelectors: {{api: {{podSelectors: {selectors}}}}}")
}

fn parse(text: &str) -> Loaded<Config> {
    super::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Fails unless each line has one error, which begins so. `~` stands for the path to the selectors.
fn check_errors(rows: &str, text: impl Fn(&str) -> String) {
    let path = "servicesAndDependantSelectors.api.podSelectors";
    for (line, said) in rows.lines().filter_map(|row| row.split_once(" => ")) {
        let text = text(line.trim());
        let error = super::parse(&text).expect_err(&text);
        let errors: Vec<_> = error.fields().iter().map(FieldError::to_string).collect();
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
    let contents = Contents::of(&path).and_then(|contents| read(&contents));
    let Loaded { config, warnings } = contents.expect("the example");
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
        services.retain(|service| service.selectors.iter().any(|one| one.matches(&labels)));
        let names: Vec<_> = services.iter().map(|service| &*service.name).collect();
        assert_eq!(names, expected, "{role}");
    }
}

#[test]
fn what_is_left_out_has_its_default() {
    for (lines, seconds, limit) in [
        ("", 300.0, None),
        ("watchDuration: null\nmaxDeletionsPerOwner: ~", 300.0, None),
        (
            "WatchDuration: 1m0.5s\nmaxDeletionsPerOwner: 3",
            60.5,
            Some(3),
        ),
    ] {
        let config = parse(&text(lines, "[{matchLabels: {a: b}}]")).config;
        let read = (
            config.watch_duration.as_secs_f64(),
            config.max_deletions_per_owner,
        );
        assert_eq!(read, (seconds, limit));
    }
}

#[test]
fn wrong_values_are_named() {
    let rows = r#"
watchDuration: 0s => watchDuration: "0s": expected a duration above 0
watchDuration: -5m => watchDuration: "-5m": expected a duration like "30s" or "1h15m", not negative
watchDuration: 300 => watchDuration: 300: expected a duration like
maxDeletionsPerOwner: 0 => maxDeletionsPerOwner: 0: expected a whole number of at least 1; without the field there is no limit
maxDeletionsPerOwner: -1 => maxDeletionsPerOwner: -1: expected a whole number of at least 1
"#;
    check_errors(rows, |line| text(line, "[{matchLabels: {a: b}}]"));
    // Without Services or selectors there is nothing to do.
    let rows = "
a: b => servicesAndDependantSelectors:
servicesAndDependantSelectors: {} => servicesAndDependantSelectors:
servicesAndDependantSelectors: null => servicesAndDependantSelectors:
servicesAndDependantSelectors: {api: null, etcd: {podSelectors: [{}]}} => ~: missing: expected a list of at least one label selector
";
    check_errors(rows, str::to_owned);
    let rows = r#"
[] => ~:
null => ~:
{} => ~:
text => ~:
[{}, {matchExpressions: [{key: role, operator: In}]}] => ~[1].matchExpressions[0].values: missing: expected at least one value with the operators In and NotIn
[{}, {matchExpressions: [{key: role, operator: Exists, values: [a]}]}] => ~[1].matchExpressions[0].values: a list: expected no values with the operators Exists and DoesNotExist
[{}, {matchExpressions: [{key: role, operator: in, values: [a]}]}] => ~[1].matchExpressions[0].operator: "in": expected one of In, NotIn, Exists, DoesNotExist
[{}, {matchExpressions: [{key: role, values: [a]}]}] => ~[1].matchExpressions[0].operator: missing: expected In, NotIn
[{}, {matchExpressions: [{key: a b, operator: Exists}]}] => ~[1].matchExpressions[0].key: "a b": expected a label key, as app or example.org/app
[{}, {matchExpressions: [{key: role, operator: In, values: [a, 'b c']}]}] => ~[1].matchExpressions[0].values[1]: "b c": expected a label value: at most 63 letters, digits, '-', '_' and '.', the first and last a letter or digit
"#;
    check_errors(rows, |selectors| text("", selectors));
}

#[test]
fn an_unknown_key_in_a_selector_is_an_error() {
    let rows = "
[{matchLabel: {a: b}}] => ~[0].matchLabel: a map: expected matchLabels or matchExpressions as a key
[{matchLabels: {a: b}, matchExpression: null}] => ~[0].matchExpression: null: expected matchLabels or
[{matchExpressions: [{key: a, operator: Exists, value: [b]}]}] => ~[0].matchExpressions[0].value: a list: expected one of key, operator, values as a key
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
        ("[null]", ": they select no pod at all"),
    ] {
        let said = format!("servicesAndDependantSelectors.api.podSelectors{said}");
        assert_eq!(parse(&text("", selectors)).warnings, [said]);
    }
}

#[test]
fn former_keys_of_the_weeder_are_named() {
    for (text, key) in [
        (
            "namespace: default\nservices: {etcd: {dependantPods: [{name: a, selector: {}}]}}",
            "services",
        ),
        (
            "service: etcd\nlabels: {}\ndependantpods: [{name: a, selector: {}}]",
            "dependantpods",
        ),
        (r#"{"services": {"etcd": {}}}"#, "services"),
    ] {
        let error = super::parse(text).expect_err("not today's");
        let said = format!("{key}: a key of versions before 1.0, which ");
        let warned = error
            .warnings()
            .iter()
            .filter(|warning| warning.starts_with(&said));
        assert_eq!(warned.count(), 1, "{text}");
        assert_eq!(error.fields()[0].field, "servicesAndDependantSelectors");
    }
}
