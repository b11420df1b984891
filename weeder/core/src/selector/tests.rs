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
    let mut all = expressions.iter();
    all.all(|expression| holds(expression, labels))
}

/// Reads a `labelSelector`.
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
        ("k notin (a,b)", "k notin (b,c)", "k notin (b)"),
        ("k", "!k", ""),
        ("!k", "!k,l", "!k"),
        ("k", "k notin (a),k", "k"),
        ("k notin (a,b),k", "k in (b)", "k,k notin (a)"),
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
    let long = |text: &str| {
        text.replace("LONG", &"a".repeat(63))
            .replace("PREFIX", &"a".repeat(253))
    };
    for key in long("app example.org/app a A_b-c.d LONG PREFIX/a").split(' ') {
        assert!(is_label_key(key), "{key}");
    }
    let wrong = "/app example.org/ Example.org/app a/b/c -a a- ä x..y/a -x/a x-/a LONGa PREFIXa/a";
    for key in long(wrong).split(' ').chain(["", "a b"]) {
        assert!(!is_label_key(key), "{key}");
    }
    for value in long("a A.b_c-9 LONG").split(' ').chain([""]) {
        assert!(is_label_value(value), "{value}");
    }
    for value in long("- a. _a ä LONGa").split(' ').chain(["b c"]) {
        assert!(!is_label_value(value), "{value}");
    }
}

fn any_selector() -> impl Strategy<Value = Vec<Expression>> {
    let values = prop::collection::btree_set("[abc]?", 1..3);
    let expression = ("[kl]", values, 0..4).prop_map(|(key, values, operator)| match operator {
        0 => Expression::In(key, values),
        1 => Expression::NotIn(key, values),
        2 => Expression::Exists(key),
        _ => Expression::DoesNotExist(key),
    });
    prop::collection::vec(expression, 0..4)
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
        let kept: Vec<_> = all.iter().cloned().map(Selector::all_of).collect();
        let common = Selector::common(&kept);
        let asked = read(&common.to_string());
        for labels in all_labels() {
            for (expressions, kept) in all.iter().zip(&kept) {
                let is_selected = selects(expressions, &labels);
                prop_assert_eq!(kept.matches(&labels), is_selected, "{} {:?}", kept, labels);
                let is_asked_for = selects(&read(&kept.to_string()), &labels);
                prop_assert!(kept.is_nothing() || is_asked_for == is_selected, "{} {:?}", kept, labels);
                let is_common = common.matches(&labels) && selects(&asked, &labels);
                prop_assert!(!is_selected || is_common, "{} {:?}", common, labels);
            }
        }
    }
}
