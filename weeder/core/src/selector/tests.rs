use kube_core::{Expression, SelectorExt};
use proptest::prelude::*;

use super::*;
use crate::config::{Config, Dependants};

/// Reads a `labelSelector` into kube's expressions, which know what it means.
fn read(text: &str) -> Vec<Expression> {
    let mut is_listing = false;
    let parts = text.split(|c| {
        is_listing = c == '(' || is_listing && c != ')';
        c == ',' && !is_listing
    });
    let expression = |part: &str| {
        let set = |text: &str| {
            text.trim_end_matches(')')
                .split(',')
                .map(str::to_owned)
                .collect()
        };
        if let Some((key, listed)) = part.split_once(" notin (") {
            Expression::NotIn(key.to_owned(), set(listed))
        } else if let Some((key, listed)) = part.split_once(" in (") {
            Expression::In(key.to_owned(), set(listed))
        } else if let Some(key) = part.strip_prefix('!') {
            Expression::DoesNotExist(key.to_owned())
        } else {
            Expression::Exists(part.to_owned())
        }
    };
    parts
        .filter(|part| !part.is_empty())
        .map(expression)
        .collect()
}

fn selects(text: &str, labels: &Labels) -> bool {
    let mut all = read(text).into_iter();
    all.all(|expression| expression.matches(labels))
}

fn selector(text: &str) -> Selector {
    let requirement = |expression| {
        let (key, operator, values) = match expression {
            Expression::In(key, values) => (key, Operator::In, values),
            Expression::NotIn(key, values) => (key, Operator::NotIn, values),
            Expression::Exists(key) => (key, Operator::Exists, BTreeSet::new()),
            Expression::DoesNotExist(key) => (key, Operator::DoesNotExist, BTreeSet::new()),
            other => panic!("{other} is never written"),
        };
        Requirement {
            key,
            operator,
            values,
        }
    };
    Selector {
        match_expressions: read(text).into_iter().map(requirement).collect(),
        ..Selector::default()
    }
}

/// A `labelSelector` for these requirements.
fn asked(requirements: &[Requirement]) -> String {
    let parts: Vec<_> = requirements.iter().map(ToString::to_string).collect();
    parts.join(",")
}

/// What the API server is asked for by Services with one selector each; nothing for a null.
fn common(selectors: &[Option<Selector>]) -> Option<String> {
    let mut config: Config = serde_json::from_str("{}").expect("defaults");
    for (number, selector) in selectors.iter().enumerate() {
        let pod_selectors = vec![selector.clone()];
        let name = number.to_string().into();
        config.services.insert(name, Dependants { pod_selectors });
    }
    Some(asked(&config.common_requirements()?))
}

#[test]
fn common_part_goes_to_the_api_server() {
    for (one, other, expected) in [
        (
            "gardener.cloud/role in (controlplane),role in (apiserver)",
            "gardener.cloud/role in (controlplane),role notin (apiserver,main)",
            "gardener.cloud/role in (controlplane)",
        ),
        ("k notin (a,b)", "k notin (b,a)", "k notin (a,b)"),
        ("k notin (a)", "k notin (a,b)", ""),
        ("k", "!k", ""),
        ("!k", "l,!k", "!k"),
        ("k in (b)", "", ""),
    ] {
        let both = [Some(selector(one)), Some(selector(other))];
        assert_eq!(common(&both).as_deref(), Some(expected), "{one}; {other}");
    }
    let labels = Selector {
        match_labels: Labels::from([("k".to_owned(), "a".to_owned())]),
        ..selector("l")
    };
    let both = [Some(labels), Some(selector("k in (a),m"))];
    assert_eq!(common(&both).as_deref(), Some("k in (a)"));
}

/// Nothing has to be asked for then; it is no empty selector.
#[test]
fn null_selects_nothing() {
    assert_eq!(common(&[]), None);
    assert_eq!(common(&[None, None]), None);
    let some = Some(selector("k"));
    assert_eq!(common(&[None, some.clone()]).as_deref(), Some("k"));
    assert_eq!(common(&[some, Some(selector(""))]).as_deref(), Some(""));
    assert!(selector("").matches(&Labels::new()));
}

fn any_selector() -> impl Strategy<Value = Selector> {
    let operators = [
        Operator::In,
        Operator::NotIn,
        Operator::Exists,
        Operator::DoesNotExist,
    ];
    let values = prop::collection::btree_set("[abc]?", 1..3);
    let operator = prop::sample::select(operators.to_vec());
    let requirement = ("[kl]", values, operator).prop_map(|(key, values, operator)| Requirement {
        key,
        operator,
        values,
    });
    let labels = prop::collection::btree_map("[kl]", "[abc]", 0..2);
    let requirements = prop::collection::vec(requirement, 0..4);
    (labels, requirements).prop_map(|(match_labels, match_expressions)| Selector {
        match_labels,
        match_expressions,
    })
}

/// Every combination of two keys, each absent, with a value in use, or with another one.
fn all_labels() -> impl Iterator<Item = Labels> {
    let values = || {
        [
            None,
            Some(""),
            Some("a"),
            Some("b"),
            Some("c"),
            Some("other"),
        ]
        .into_iter()
    };
    let label = |key: &str, value: Option<&str>| Some((key.to_owned(), value?.to_owned()));
    let labels = move |k, l| {
        [label("k", k), label("l", l)]
            .into_iter()
            .flatten()
            .collect()
    };
    values().flat_map(move |k| values().map(move |l| labels(k, l)))
}

proptest! {
    #[test]
    fn selectors_mean_what_they_say(all in prop::collection::vec(any_selector(), 1..4)) {
        let common = common(&all.iter().cloned().map(Some).collect::<Vec<_>>()).expect("selectors");
        for labels in all_labels() {
            for selector in &all {
                let text = asked(&selector.requirements());
                let is_selected = selects(&text, &labels);
                prop_assert_eq!(selector.matches(&labels), is_selected, "{} {:?}", text, labels);
                prop_assert!(!is_selected || selects(&common, &labels), "{} {:?}", common, labels);
            }
        }
    }
}
