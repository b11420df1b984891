//! That selectors mean what they mean to an API server, random files show (`kind-tests/readers`).

use std::path::Path;
use std::time::Duration;

use common::document::FieldError;

use super::*;

const ONE: &str = "[{matchLabels: {a: b}}]";

/// A config with these lines and one Service with these selectors.
fn text(lines: &str, selectors: &str) -> String {
    format!("{lines}\nservicesAndDependantSelectors: {{api: {{podSelectors: {selectors}}}}}")
}

fn parse(text: &str) -> Loaded<Config> {
    super::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn errors(text: &str) -> Vec<String> {
    let error = super::parse(text).expect_err(text);
    error.fields().iter().map(FieldError::to_string).collect()
}

/// Fails unless each text has one error, which begins so.
fn check_errors(rows: impl IntoIterator<Item = (String, String)>) {
    for (text, said) in rows {
        let errors = errors(&text);
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
    for (role, services) in [
        ("apiserver", &["etcd-main-client"][..]),
        ("main", &[]),
        ("controller-manager", &["kube-apiserver"]),
    ] {
        let labels = [("gardener.cloud/role", "controlplane"), ("role", role)];
        let labels = labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        let selects = |service: &&Service| {
            service
                .selectors
                .iter()
                .any(|selector| selector.matches(&labels))
        };
        let selected = config
            .services
            .iter()
            .filter(selects)
            .map(|service| &*service.name);
        assert_eq!(selected.collect::<Vec<_>>(), services, "{role}");
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
        let config = parse(&text(lines, ONE)).config;
        assert_eq!(
            (
                config.watch_duration.as_secs_f64(),
                config.max_deletions_per_owner
            ),
            (seconds, limit)
        );
    }
}

#[test]
fn wrong_values_are_named() {
    check_errors(
        [
            ("watchDuration: 0s", "watchDuration: \"0s\": expected a duration above 0"),
            ("watchDuration: -5m", "watchDuration: \"-5m\": expected a duration like \"30s\" or \"1h15m\", not negative"),
            ("watchDuration: 300", "watchDuration: 300: expected a duration like"),
            ("maxDeletionsPerOwner: 0", "maxDeletionsPerOwner: 0: expected a whole number of at least 1; without the field there is no limit"),
            ("maxDeletionsPerOwner: -1", "maxDeletionsPerOwner: -1: expected a whole number of at least 1"),
        ]
        .map(|(lines, said)| (text(lines, ONE), said.to_owned())),
    );
}

#[test]
fn without_services_or_selectors_there_is_nothing_to_do() {
    let services = [
        "",
        "servicesAndDependantSelectors: {}",
        "servicesAndDependantSelectors: null",
    ];
    check_errors(services.map(|text| {
        (
            text.to_owned(),
            "servicesAndDependantSelectors: ".to_owned(),
        )
    }));
    let path = "servicesAndDependantSelectors.api.podSelectors: ";
    let selectors = ["[]", "null", "", "{}", "text"];
    check_errors(selectors.map(|selectors| (text("", selectors), path.to_owned())));
    // One that has none beside a valid one.
    let beside = "servicesAndDependantSelectors: {api: null, etcd: {podSelectors: [{}]}}";
    check_errors([(
        beside.to_owned(),
        format!("{path}missing: expected a list of at least one label selector"),
    )]);
}

#[test]
fn wrong_requirements_are_named() {
    let values = "expected at least one value with the operators In and NotIn";
    let no_values = "expected no values with the operators Exists and DoesNotExist";
    let operators = "expected one of In, NotIn, Exists, DoesNotExist";
    let key = "expected a label key, as app or example.org/app";
    let value = "expected a label value: at most 63 letters, digits, '-', '_' and '.', the first and last a letter or digit";
    let rows = [
        (
            "key: role, operator: In",
            format!(".values: missing: {values}"),
        ),
        (
            "key: role, operator: Exists, values: [a]",
            format!(".values: a list: {no_values}"),
        ),
        (
            "key: role, operator: in, values: [a]",
            format!(".operator: \"in\": {operators}"),
        ),
        (
            "key: role, values: [a]",
            ".operator: missing: expected In, NotIn".to_owned(),
        ),
        (
            "key: a b, operator: Exists",
            format!(".key: \"a b\": {key}"),
        ),
        (
            "key: role, operator: In, values: [a, 'b c']",
            format!(".values[1]: \"b c\": {value}"),
        ),
    ];
    let path = "servicesAndDependantSelectors.api.podSelectors[1].matchExpressions[0]";
    check_errors(rows.map(|(requirement, said)| {
        let selectors = format!("[{{}}, {{matchExpressions: [{{{requirement}}}]}}]");
        (text("", &selectors), format!("{path}{said}"))
    }));
}

#[test]
fn an_unknown_key_in_a_selector_is_an_error() {
    let path = "servicesAndDependantSelectors.api.podSelectors[0]";
    let rows = [
        (
            "{matchLabel: {a: b}}",
            ".matchLabel: a map: expected matchLabels or matchExpressions as a key",
        ),
        (
            "{matchLabels: {a: b}, matchExpression: null}",
            ".matchExpression: null: expected matchLabels or",
        ),
        (
            "{matchExpressions: [{key: a, operator: Exists, value: [b]}]}",
            ".matchExpressions[0].value: a list: expected one of key, operator, values as a key",
        ),
    ];
    check_errors(
        rows.map(|(selector, said)| (text("", &format!("[{selector}]")), format!("{path}{said}"))),
    );
}

#[test]
fn a_selector_that_comes_out_empty_is_a_warning() {
    for (selectors, said) in [
        (
            "[{matchLabels: {a: b}}, {}]",
            "[1]: it is empty, so it selects every pod of the namespace",
        ),
        (
            "[{matchLabels: null, matchExpressions: []}]",
            "[0]: it is empty, so it selects every pod of the namespace",
        ),
        ("[null]", ": they select no pod at all"),
    ] {
        let said = format!("servicesAndDependantSelectors.api.podSelectors{said}");
        assert_eq!(parse(&text("", selectors)).warnings, [said]);
    }
}

#[test]
fn former_keys_of_the_weeder_are_named() {
    let dependants = "dependantPods: [{name: a, selector: {matchLabels: {role: b}}}]";
    for (text, key) in [
        (
            format!("namespace: default\nservices: {{etcd: {{{dependants}}}}}"),
            "services",
        ),
        (
            format!("service: etcd\nlabels: {{}}\n{}", dependants.to_lowercase()),
            "dependantpods",
        ),
        ("{\"services\": {\"etcd\": {}}}".to_owned(), "services"),
    ] {
        let error = super::parse(&text).expect_err("not today's");
        let said = format!("{key}: a key of versions before 1.0, which ");
        let warned = error
            .warnings()
            .iter()
            .filter(|warning| warning.starts_with(&said));
        assert_eq!(warned.count(), 1, "{text}");
        assert_eq!(error.fields()[0].field, "servicesAndDependantSelectors");
    }
}
