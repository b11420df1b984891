use proptest::prelude::*;

use super::*;

/// Whether labels fulfil an expression, word for word from Kubernetes' documentation.
fn holds(expression: &Expression, labels: &Labels) -> bool {
    match expression {
        Expression::In(key, values) => labels.get(key).is_some_and(|label| values.contains(label)),
        Expression::NotIn(key, values) => {
            labels.get(key).is_none_or(|label| !values.contains(label))
        }
        Expression::Exists(key) => labels.contains_key(key),
        Expression::DoesNotExist(key) => !labels.contains_key(key),
        other => panic!("{other} is never written"),
    }
}

fn selects(expressions: &[Expression], labels: &Labels) -> bool {
    expressions
        .iter()
        .all(|expression| holds(expression, labels))
}

/// Reads a `labelSelector`.
fn read(text: &str) -> Vec<Expression> {
    let mut is_listing = false;
    let parts = text.split(|c| {
        is_listing = c == '(' || is_listing && c != ')';
        c == ',' && !is_listing
    });
    let expression = |part: &str| {
        let values = |text: &str| {
            text.trim_end_matches(')')
                .split(',')
                .map(str::to_owned)
                .collect()
        };
        if let Some((key, listed)) = part.split_once(" notin (") {
            Expression::NotIn(key.to_owned(), values(listed))
        } else if let Some((key, listed)) = part.split_once(" in (") {
            Expression::In(key.to_owned(), values(listed))
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

fn selector(text: &str) -> Selector {
    Selector::all_of(read(text))
}

#[test]
fn common_part_goes_to_the_api_server() {
    for (one, other, common) in [
        (
            "gardener.cloud/role in (controlplane),role in (apiserver)",
            "gardener.cloud/role in (controlplane),role notin (main,apiserver)",
            "gardener.cloud/role in (controlplane),role notin (main)",
        ),
        ("!k", "!k,l", "!k"),
        ("k", "k notin (a),k", "k"),
        ("k in (b)", "k in (a)", "k in (a,b)"),
        // No expression matches an absent label as well as certain values.
        ("k in (a),l", "!k,l", "l"),
    ] {
        let common_part = Selector::common(&[selector(one), selector(other)]);
        assert_eq!(common_part.to_string(), common, "{one}; {other}");
    }
}

#[test]
fn everything_and_nothing_are_selected() {
    assert!(selector("").is_everything() && selector("").matches(&Labels::new()));
    for nothing in [
        Selector::nothing(),
        selector("k in (a),k in (b)"),
        selector("k,!k"),
        Selector::common([]),
    ] {
        assert!(nothing.is_nothing() && !nothing.is_everything());
        assert!(!nothing.matches(&Labels::new()));
        assert!(Selector::common([&nothing]).is_nothing());
        assert_eq!(Selector::common([&nothing, &selector("k")]), selector("k"));
    }
}

#[test]
fn labels_are_those_of_an_api_server() {
    let long = |length| "a".repeat(length);
    let prefixed = |length| format!("{}/a", long(length));
    for key in [
        "app",
        "example.org/app",
        "a",
        "A_b-c.d",
        &long(63),
        &prefixed(253),
    ] {
        assert!(is_label_key(key), "{key}");
    }
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
        "-x/a",
        "x-/a",
        &long(64),
        &prefixed(254),
    ] {
        assert!(!is_label_key(key), "{key}");
    }
    for value in ["", "a", "A.b_c-9", &long(63)] {
        assert!(is_label_value(value), "{value}");
    }
    for value in ["-", "b c", "a.", "_a", "ä", &long(64)] {
        assert!(!is_label_value(value), "{value}");
    }
}

fn any_expression() -> impl Strategy<Value = Expression> {
    let values = || prop::collection::btree_set("[abc]?", 1..3);
    let key = prop::sample::select(vec!["k", "l"]).prop_map(str::to_owned);
    (key, values(), 0..4).prop_map(|(key, values, operator)| match operator {
        0 => Expression::In(key, values),
        1 => Expression::NotIn(key, values),
        2 => Expression::Exists(key),
        _ => Expression::DoesNotExist(key),
    })
}

fn any_selector() -> impl Strategy<Value = Vec<Expression>> {
    prop::collection::vec(any_expression(), 0..4)
}

/// Every combination of two keys, each absent, with a value in use, or with another one.
fn all_labels() -> impl Iterator<Item = Labels> {
    const VALUES: [Option<&str>; 6] = [
        None,
        Some(""),
        Some("a"),
        Some("b"),
        Some("c"),
        Some("other"),
    ];
    let label = |key: &str, value: Option<&str>| Some((key.to_owned(), value?.to_owned()));
    VALUES
        .into_iter()
        .flat_map(move |k| VALUES.map(|l| label("k", k).into_iter().chain(label("l", l)).collect()))
}

proptest! {
    #[test]
    fn selector_matches_what_fulfils_all(expressions in any_selector()) {
        let kept = Selector::all_of(expressions.clone());
        for labels in all_labels() {
            prop_assert_eq!(kept.matches(&labels), selects(&expressions, &labels), "{} {:?}", kept, labels);
        }
    }

    #[test]
    fn selector_is_written_exactly(expressions in any_selector()) {
        let kept = Selector::all_of(expressions.clone());
        prop_assume!(!kept.is_nothing());
        let read = read(&kept.to_string());
        for labels in all_labels() {
            prop_assert_eq!(selects(&read, &labels), selects(&expressions, &labels), "{} {:?}", kept, labels);
        }
    }

    #[test]
    fn common_part_misses_nothing(all in prop::collection::vec(any_selector(), 1..4)) {
        let kept: Vec<_> = all.iter().cloned().map(Selector::all_of).collect();
        let common = Selector::common(&kept);
        let read = read(&common.to_string());
        for labels in all_labels() {
            if all.iter().any(|expressions| selects(expressions, &labels)) {
                prop_assert!(common.matches(&labels) && selects(&read, &labels), "{} {:?}", common, labels);
            }
        }
    }

    #[test]
    fn common_part_of_one_key_is_exact(a in any_expression(), b in any_expression()) {
        prop_assume!(parts(&a).0 == parts(&b).0);
        let either = |labels: &Labels| holds(&a, labels) || holds(&b, labels);
        let other = Labels::from([(parts(&a).0.to_owned(), "other".to_owned())]);
        let common = Selector::common(&[&a, &b].map(|one| Selector::all_of([one.clone()])));
        let is_mixed = std::mem::discriminant(&a) != std::mem::discriminant(&b);
        for labels in all_labels() {
            let cannot_be_said = either(&Labels::new()) && !either(&other) && is_mixed;
            prop_assert!(common.matches(&labels) == either(&labels) || cannot_be_said, "{} {:?}", common, labels);
        }
    }
}
