use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use proptest::prelude::*;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> Expression {
    expression(
        key,
        operator,
        values.iter().map(|value| (*value).to_owned()).collect(),
    )
}

fn expression(key: &str, operator: &str, values: Vec<String>) -> Expression {
    let requirement = LabelSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: Some(values),
    };
    requirement.try_into().expect("an operator")
}

#[test]
fn operators_mean_the_same() {
    let (absent, a, c) = (labels(&[]), labels(&[("k", "a")]), labels(&[("k", "c")]));
    let cases = [
        ("In", vec!["a", "b"], [false, true, false]),
        ("NotIn", vec!["a", "b"], [true, false, true]),
        ("Exists", vec![], [false, true, true]),
        ("DoesNotExist", vec![], [true, false, false]),
    ];
    for (operator, values, expected) in cases {
        let selector = Selector::all_of([requirement("k", operator, &values)]);
        assert_eq!(
            [&absent, &a, &c].map(|labels| selector.matches(labels)),
            expected,
            "{operator}"
        );
    }
}

#[test]
fn everything_and_nothing_are_selected() {
    assert!(Selector::all_of([]).is_everything());
    assert!(!Selector::nothing().is_everything());
    assert!(!Selector::all_of([requirement("k", "Exists", &[])]).is_everything());
    for labels in [labels(&[]), labels(&[("k", "a")])] {
        assert!(Selector::all_of([]).matches(&labels));
        assert!(!Selector::nothing().matches(&labels));
    }
    assert!(
        Selector::all_of([
            requirement("k", "In", &["a"]),
            requirement("k", "In", &["b"])
        ])
        .is_nothing()
    );
    assert!(
        Selector::all_of([
            requirement("k", "Exists", &[]),
            requirement("k", "DoesNotExist", &[])
        ])
        .is_nothing()
    );
}

#[test]
fn common_part_goes_to_the_api_server() {
    let api_server = Selector::all_of([
        requirement("gardener.cloud/role", "In", &["controlplane"]),
        requirement("role", "In", &["apiserver"]),
    ]);
    let dependants = Selector::all_of([
        requirement("gardener.cloud/role", "In", &["controlplane"]),
        requirement("role", "NotIn", &["main", "apiserver"]),
    ]);
    let common = Selector::common([&api_server, &dependants]);
    assert_eq!(
        common.to_string(),
        "gardener.cloud/role in (controlplane),role notin (main)"
    );
}

#[test]
fn selectors_are_written() {
    let written = |requirements: Vec<Expression>| Selector::all_of(requirements).to_string();
    assert_eq!(written(vec![]), "");
    assert_eq!(written(vec![requirement("k", "Exists", &[])]), "k");
    assert_eq!(written(vec![requirement("k", "DoesNotExist", &[])]), "!k");
    assert_eq!(
        written(vec![requirement("k", "In", &["b", "a"])]),
        "k in (a,b)"
    );
    assert_eq!(written(vec![requirement("k", "In", &[""])]), "k in ()");
    let both = vec![
        requirement("k", "Exists", &[]),
        requirement("k", "NotIn", &["a"]),
    ];
    assert_eq!(written(both), "k,k notin (a)");
}

#[test]
fn unsayable_part_is_left_out() {
    let either = [
        Selector::all_of([
            requirement("k", "In", &["a"]),
            requirement("l", "Exists", &[]),
        ]),
        Selector::all_of([
            requirement("k", "DoesNotExist", &[]),
            requirement("l", "Exists", &[]),
        ]),
    ];
    assert_eq!(Selector::common(&either).to_string(), "l");
}

#[test]
fn nothing_has_no_say() {
    let one = Selector::all_of([requirement("k", "In", &["a"])]);
    assert_eq!(Selector::common([&Selector::nothing(), &one]), one);
    assert!(Selector::common([&Selector::nothing()]).is_nothing());
    assert!(Selector::common([]).is_nothing());
}

/// A requirement as its author wrote it, and what it means, word for word from Kubernetes'
/// documentation.
type WrittenExpression = (String, &'static str, Vec<String>);

fn holds((key, operator, values): &WrittenExpression, labels: &Labels) -> bool {
    let label = labels.get(key);
    match *operator {
        "In" => label.is_some_and(|label| values.contains(label)),
        "NotIn" => label.is_none_or(|label| !values.contains(label)),
        "Exists" => label.is_some(),
        _ => label.is_none(),
    }
}

fn selects(selector: &[WrittenExpression], labels: &Labels) -> bool {
    selector
        .iter()
        .all(|requirement| holds(requirement, labels))
}

fn made(selector: &[WrittenExpression]) -> Selector {
    Selector::all_of(
        selector
            .iter()
            .map(|(key, operator, values)| expression(key, operator, values.clone())),
    )
}

/// Reads a `labelSelector` back.
fn read(text: &str) -> Vec<WrittenExpression> {
    let mut rest = text;
    let mut requirements = Vec::new();
    while !rest.is_empty() {
        let end = match (rest.find(','), rest.find('(')) {
            (Some(comma), Some(open)) if open < comma => {
                rest.find(')').expect("a closing bracket") + 1
            }
            (Some(comma), _) => comma,
            (None, _) => rest.len(),
        };
        let (part, after) = rest.split_at(end);
        rest = after.strip_prefix(',').unwrap_or(after);
        let listed = |text: &str| {
            text.trim_end_matches(')')
                .split(',')
                .map(str::to_owned)
                .collect()
        };
        requirements.push(if let Some((key, values)) = part.split_once(" notin (") {
            (key.to_owned(), "NotIn", listed(values))
        } else if let Some((key, values)) = part.split_once(" in (") {
            (key.to_owned(), "In", listed(values))
        } else if let Some(key) = part.strip_prefix('!') {
            (key.to_owned(), "DoesNotExist", Vec::new())
        } else {
            (part.to_owned(), "Exists", Vec::new())
        });
    }
    requirements
}

fn any_requirement() -> impl Strategy<Value = WrittenExpression> {
    let values = || prop::collection::vec(prop::sample::select(vec!["", "a", "b", "c"]), 1..3);
    let values = move || {
        values().prop_map(|values| values.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let form = prop_oneof![
        values().prop_map(|values| ("In", values)),
        values().prop_map(|values| ("NotIn", values)),
        Just(("Exists", Vec::new())),
        Just(("DoesNotExist", Vec::new())),
    ];
    (prop::sample::select(vec!["k", "l"]), form)
        .prop_map(|(key, (operator, values))| (key.to_owned(), operator, values))
}

fn any_selector() -> impl Strategy<Value = Vec<WrittenExpression>> {
    prop::collection::vec(any_requirement(), 0..4)
}

/// Every combination of two keys, each absent, with a value in use, or with another one.
fn all_labels() -> Vec<Labels> {
    let values = [
        None,
        Some(""),
        Some("a"),
        Some("b"),
        Some("c"),
        Some("other"),
    ];
    let pairs = values
        .iter()
        .flat_map(|k| values.iter().map(move |l| (k, l)));
    pairs
        .map(|(k, l)| {
            let present = [("k", k), ("l", l)]
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), (*value)?.to_owned())));
            present.collect()
        })
        .collect()
}

proptest! {
    #[test]
    fn selector_matches_what_fulfils_all(selector in any_selector()) {
        let kept = made(&selector);
        for labels in all_labels() {
            prop_assert_eq!(kept.matches(&labels), selects(&selector, &labels), "{:?} {:?}", selector, labels);
        }
    }

    #[test]
    fn selector_is_written_exactly(selector in any_selector()) {
        let kept = made(&selector);
        prop_assume!(!kept.is_nothing());
        let read = read(&kept.to_string());
        for labels in all_labels() {
            prop_assert_eq!(selects(&read, &labels), selects(&selector, &labels), "{} {:?}", kept, labels);
        }
    }

    #[test]
    fn common_part_misses_nothing(selectors in prop::collection::vec(any_selector(), 1..4)) {
        let kept: Vec<Selector> = selectors.iter().map(|selector| made(selector)).collect();
        let common = Selector::common(&kept);
        let read = read(&common.to_string());
        for labels in all_labels() {
            if selectors.iter().any(|selector| selects(selector, &labels)) {
                prop_assert!(common.matches(&labels) && selects(&read, &labels), "{} {:?}", common, labels);
            }
        }
    }

    #[test]
    fn common_part_of_one_key_is_exact(a in any_requirement(), b in any_requirement()) {
        prop_assume!(a.0 == b.0);
        let kept = [made(std::slice::from_ref(&a)), made(std::slice::from_ref(&b))];
        let either = |labels: &Labels| holds(&a, labels) || holds(&b, labels);
        let other = labels(&[(&a.0, "other")]);
        let common = Selector::common(&kept);
        for labels in all_labels() {
            let cannot_be_said = either(&Labels::new()) && !either(&other) && a.1 != b.1;
            prop_assert!(common.matches(&labels) == either(&labels) || cannot_be_said, "{} {:?}", common, labels);
        }
    }
}
