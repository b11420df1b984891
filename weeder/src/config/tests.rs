use std::path::Path;
use std::time::Duration;

use common::document::FieldError;
use weeder_core::selector::Labels;

use super::*;

const FIVE_MINUTES: Duration = Duration::from_secs(300);

/// A config with one Service and these selectors.
fn with_selectors(selectors: &str) -> String {
    format!("servicesAndDependantSelectors:\n  kube-apiserver:\n    podSelectors: {selectors}\n")
}

/// A config in which everything optional is left out, with these lines.
fn with_lines(lines: &str) -> String {
    format!("{lines}\n{}", with_selectors("[{matchLabels: {a: b}}]"))
}

fn parse(text: &str) -> Loaded<Config> {
    super::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn errors(text: &str) -> Vec<String> {
    let error = super::parse(text).expect_err(text);
    error.fields().iter().map(FieldError::to_string).collect()
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// Whether the only selector of the text matches.
fn matches(selector: &str, pairs: &[(&str, &str)]) -> bool {
    parse(&with_selectors(&format!("[{selector}]")))
        .config
        .services[0]
        .selectors[0]
        .matches(&labels(pairs))
}

#[test]
fn gardeners_config_loads_as_rendered() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/weeder.yaml");
    let Loaded { config, warnings } = Contents::of(&path)
        .and_then(|contents| read(&contents))
        .expect("the example");
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(config.watch_duration, FIVE_MINUTES);
    assert_eq!(config.max_deletions_per_owner, None);
    let names: Vec<&str> = config
        .services
        .iter()
        .map(|service| &*service.name)
        .collect();
    assert_eq!(names, ["etcd-main-client", "kube-apiserver"]);
    let selected = |role: &str| -> Vec<bool> {
        let labels = labels(&[("gardener.cloud/role", "controlplane"), ("role", role)]);
        config
            .services
            .iter()
            .map(|service| {
                service
                    .selectors
                    .iter()
                    .any(|selector| selector.matches(&labels))
            })
            .collect()
    };
    assert_eq!(selected("apiserver"), [true, false]);
    assert_eq!(selected("main"), [false, false]);
    assert_eq!(selected("controller-manager"), [false, true]);
}

#[test]
fn what_is_left_out_has_its_default() {
    for text in [
        with_lines(""),
        with_lines("watchDuration: null\nmaxDeletionsPerOwner: ~"),
    ] {
        let config = parse(&text).config;
        assert_eq!(
            (config.watch_duration, config.max_deletions_per_owner),
            (FIVE_MINUTES, None)
        );
    }
}

#[test]
fn watch_duration_is_a_positive_go_duration() {
    assert_eq!(
        parse(&with_lines("watchDuration: 1m0.5s"))
            .config
            .watch_duration,
        Duration::from_millis(60_500)
    );
    for (wrong, said) in [
        ("0s", "watchDuration: \"0s\": expected a duration above 0"),
        (
            "-5m",
            "watchDuration: \"-5m\": expected a duration like \"30s\" or \"1h15m\", not negative (units: ns, us, ms, s, m, h)",
        ),
        (
            "300",
            "watchDuration: 300: expected a duration like \"30s\" or \"1h15m\", not negative (units: ns, us, ms, s, m, h)",
        ),
    ] {
        assert_eq!(
            errors(&with_lines(&format!("watchDuration: {wrong}"))),
            [said]
        );
    }
}

#[test]
fn a_limit_of_deletions_is_at_least_one() {
    assert_eq!(
        parse(&with_lines("maxDeletionsPerOwner: 3"))
            .config
            .max_deletions_per_owner,
        Some(3)
    );
    for wrong in ["0", "-1"] {
        let said = format!(
            "maxDeletionsPerOwner: {wrong}: expected a whole number of at least 1; without the field there is no limit"
        );
        assert_eq!(
            errors(&with_lines(&format!("maxDeletionsPerOwner: {wrong}"))),
            [said]
        );
    }
}

#[test]
fn without_services_or_selectors_there_is_nothing_to_do() {
    for text in [
        "",
        "servicesAndDependantSelectors: {}",
        "servicesAndDependantSelectors: null",
    ] {
        assert_eq!(errors(text).len(), 1, "{text}");
    }
    for selectors in ["[]", "null", "", "{}", "text"] {
        assert_eq!(errors(&with_selectors(selectors)).len(), 1, "{selectors}");
    }
}

#[test]
fn a_service_without_selectors_is_one_error_beside_a_valid_one() {
    let text = "servicesAndDependantSelectors: {etcd-main-client: null, kube-apiserver: {podSelectors: [{}]}}";
    let said = "servicesAndDependantSelectors.etcd-main-client.podSelectors: missing: expected a list of at least one label selector";
    assert_eq!(errors(text), [said]);
}

#[test]
fn an_operator_without_the_values_it_needs_is_one_error_that_names_service_and_selector() {
    let path = "servicesAndDependantSelectors.kube-apiserver.podSelectors[1].matchExpressions[0]";
    let of = |expression: &str| {
        errors(&with_selectors(&format!(
            "[{{}}, {{matchExpressions: [{{{expression}}}]}}]"
        )))
    };
    let values = "at least one value with the operators In and NotIn";
    assert_eq!(
        of("key: role, operator: In"),
        [format!("{path}.values: missing: expected {values}")]
    );
    assert_eq!(of("key: role, operator: NotIn, values: []").len(), 1);
    assert_eq!(of("key: role, operator: Exists, values: [a]").len(), 1);
    assert_eq!(
        of("key: role, operator: in, values: [a]"),
        [format!(
            "{path}.operator: \"in\": expected one of In, NotIn, Exists, DoesNotExist"
        )]
    );
    assert_eq!(
        of("operator: Exists"),
        [format!(
            "{path}.key: missing: expected a label key, as app or example.org/app"
        )]
    );
    assert_eq!(
        of("key: a b, operator: Exists"),
        [format!(
            "{path}.key: \"a b\": expected a label key, as app or example.org/app"
        )]
    );
    let said = of("key: role, operator: In, values: [a, 'b c']");
    assert!(
        said.len() == 1
            && said[0].starts_with(&format!(
                "{path}.values[1]: \"b c\": expected a label value"
            )),
        "{said:?}"
    );
    assert_eq!(of("").len(), 2, "key and operator");
}

/// The fields of one requirement that are refused, and what is expected of them.
fn refused(key: &str, operator: &str, values: &[&str]) -> Vec<(String, String)> {
    let requirement = format!("{{key: {key:?}, operator: {operator:?}, values: {values:?}}}");
    let refused = super::parse(&with_selectors(&format!(
        "[{{matchExpressions: [{requirement}]}}]"
    )))
    .err();
    let path = "servicesAndDependantSelectors.kube-apiserver.podSelectors[0].matchExpressions[0].";
    let errors = refused.iter().flat_map(ConfigError::fields);
    errors
        .map(|error| (error.field.replace(path, ""), error.expected.clone()))
        .collect()
}

fn error(field: &str, expected: &str) -> Vec<(String, String)> {
    vec![(field.to_owned(), expected.to_owned())]
}

#[test]
fn keys_of_requirements_are_checked_as_the_api_server_does() {
    for key in [
        "app",
        "example.org/app",
        "a",
        "A_b-c.d",
        &"a".repeat(63),
        &format!("{}/a", "a".repeat(253)),
    ] {
        assert_eq!(refused(key, "Exists", &[]), vec![], "{key}");
    }
    let long_prefix = format!("{}/a", "a".repeat(254));
    for key in [
        "",
        "/app",
        "example.org/",
        "Example.org/app",
        "a/b/c",
        "-a",
        "a-",
        "a b",
        "ä",
        "x..y/a",
        &"a".repeat(64),
        &long_prefix,
    ] {
        assert_eq!(
            refused(key, "Exists", &[]),
            error("key", "a label key, as app or example.org/app"),
            "{key}"
        );
    }
}

#[test]
fn operators_and_values_are_checked_as_the_api_server_does() {
    let value = "a label value: at most 63 letters, digits, '-', '_' and '.', the first and last a letter or digit";
    for operator in ["In", "NotIn"] {
        assert_eq!(
            refused("k", operator, &[]),
            error(
                "values",
                "at least one value with the operators In and NotIn"
            )
        );
        assert_eq!(refused("k", operator, &["", "a", "A.b_c-9"]), vec![]);
        assert_eq!(
            refused("k", operator, &["a", "-"]),
            error("values[1]", value)
        );
        assert_eq!(
            refused("k", operator, &[&"a".repeat(64)]),
            error("values[0]", value)
        );
    }
    for operator in ["Exists", "DoesNotExist"] {
        assert_eq!(
            refused("k", operator, &["a"]),
            error(
                "values",
                "no values with the operators Exists and DoesNotExist"
            )
        );
    }
    for operator in ["in", "Gt", "", "notin"] {
        assert_eq!(
            refused("k", operator, &[]),
            error("operator", "one of In, NotIn, Exists, DoesNotExist")
        );
    }
}

#[test]
fn wrong_labels_are_named() {
    let path = "servicesAndDependantSelectors.kube-apiserver.podSelectors[0].matchLabels";
    let said = errors(&with_selectors(
        "[{matchLabels: {'a b': c, d: 'e f', g: h}}]",
    ));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].starts_with(&format!("{path}.a b: "))
            && said[1].starts_with(&format!("{path}.d: \"e f\": ")),
        "{said:?}"
    );
}

#[test]
fn all_errors_are_found_in_one_go() {
    let text = "
watchDuration: 5
maxDeletionsPerOwner: many
servicesAndDependantSelectors:
  'not a name': {podSelectors: [{}]}
  a: {podSelectors: [{matchExpressions: [{key: k, operator: In}]}, {matchLabels: text}]}
  b: {podSelectors: []}
";
    assert_eq!(errors(text).len(), 6, "{:#?}", errors(text));
}

#[test]
fn both_parts_of_a_selector_must_match() {
    let selector =
        "{matchLabels: {a: x, b: 1}, matchExpressions: [{key: c, operator: DoesNotExist}]}";
    assert!(matches(selector, &[("a", "x"), ("b", "1")]));
    assert!(!matches(selector, &[("a", "x")]));
    assert!(!matches(selector, &[("a", "x"), ("b", "1"), ("c", "y")]));
}

#[test]
fn an_empty_selector_selects_everything_and_a_null_one_nothing() {
    assert!(matches("{}", &[]));
    assert!(matches("{matchLabels: null, matchExpressions: null}", &[]));
    assert!(!matches("null", &[]));
    let Loaded { config, warnings } = parse(&with_selectors("[null]"));
    assert!(config.common_selector().is_nothing());
    assert_eq!(
        warnings,
        ["servicesAndDependantSelectors.kube-apiserver.podSelectors: they select no pod at all"]
    );
}

#[test]
fn field_names_match_in_any_case_and_names_of_services_do_not() {
    let text = "WatchDuration: 1m\nservicesanddependantselectors: {S: {podselectors: [{MatchLabels: {A: b}}]}}";
    let config = parse(text).config;
    assert_eq!(
        (config.watch_duration, &*config.services[0].name),
        (FIVE_MINUTES / 5, "S")
    );
    assert!(config.services[0].selectors[0].matches(&labels(&[("A", "b")])));
    assert!(!config.services[0].selectors[0].matches(&labels(&[("a", "b")])));
}

#[test]
fn unknown_keys_are_a_warning() {
    let warnings = parse(&with_lines("watchduratoin: 1m")).warnings;
    assert_eq!(
        warnings,
        ["watchduratoin: unknown key, ignored (line 1, column 16)"]
    );
    let warnings =
        parse("servicesAndDependantSelectors: {api: {podSelectors: [null], podSelector: []}}")
            .warnings;
    assert_eq!(
        warnings[0],
        "servicesAndDependantSelectors.api.podSelector: unknown key, ignored (line 1, column 74)"
    );
}

#[test]
fn an_unknown_key_in_a_selector_is_an_error() {
    let path = "servicesAndDependantSelectors.kube-apiserver.podSelectors[0]";
    for (selector, said) in [
        (
            "{matchLabel: {a: b}}",
            ".matchLabel: a map: expected matchLabels or matchExpressions as a key",
        ),
        (
            "{matchLabels: {a: b}, matchExpression: null}",
            ".matchExpression: null: expected matchLabels or matchExpressions as a key",
        ),
        (
            "{matchExpressions: [{key: a, operator: Exists, value: [b]}]}",
            ".matchExpressions[0].value: a list: expected one of key, operator, values as a key",
        ),
    ] {
        let errors = errors(&with_selectors(&format!("[{selector}]")));
        assert_eq!(errors, [format!("{path}{said}")]);
    }
    assert!(matches("{MATCHLABELS: {a: b}}", &[("a", "b")]));
}

#[test]
fn a_selector_that_comes_out_empty_is_a_warning() {
    for selector in [
        "{}",
        "{matchLabels: {}}",
        "{matchLabels: null, matchExpressions: []}",
    ] {
        let text = with_selectors(&format!("[{{matchLabels: {{a: b}}}}, {selector}]"));
        let said = "servicesAndDependantSelectors.kube-apiserver.podSelectors[1]: it is empty, so it selects every pod of the namespace";
        assert_eq!(parse(&text).warnings, [said], "{selector}");
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
        let warned = error.warnings().iter();
        assert!(warned.filter(|warning| warning.starts_with(&said)).count() == 1);
        assert_eq!(error.fields()[0].field, "servicesAndDependantSelectors");
    }
}
