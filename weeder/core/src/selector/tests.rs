use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_core::SelectorExt;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;
use crate::config::{Config, Dependants};

/// A selector in words: `k=a; k in a,b; l notin a; k; !k`.
fn selector(text: &str) -> Selector {
    let mut selector = Selector::default();
    for part in text.split("; ").filter(|part| !part.is_empty()) {
        if let Some((key, value)) = part.split_once('=') {
            selector.match_labels.insert(key.into(), value.into());
            continue;
        }
        let (key, operator, values) = match part.split(' ').collect::<Vec<_>>()[..] {
            [key, "in", values] => (key, Operator::In, values),
            [key, "notin", values] => (key, Operator::NotIn, values),
            _ => match part.strip_prefix('!') {
                Some(key) => (key, Operator::DoesNotExist, ""),
                None => (part, Operator::Exists, ""),
            },
        };
        let values = values.split(',').filter(|value| !value.is_empty());
        selector.match_expressions.push(Requirement {
            key: key.into(),
            operator,
            values: values.map(str::to_owned).collect(),
        });
    }
    selector
}

/// The same as kube has it, which knows what it means.
fn by_kube(selector: &Selector) -> kube_core::Selector {
    let json = serde_json::to_value(selector).expect("JSON");
    let selector: LabelSelector = serde_json::from_value(json).expect("a LabelSelector");
    selector.try_into().expect("known operators")
}

/// What the API server is asked for by Services with one selector each; nothing for a null.
fn common(selectors: &[Option<Selector>]) -> Option<Selector> {
    let mut config: Config = serde_json::from_str("{}").expect("defaults");
    for (number, selector) in selectors.iter().enumerate() {
        let pod_selectors = vec![selector.clone()];
        let name = number.to_string().into();
        config.services.insert(name, Dependants { pod_selectors });
    }
    Some(asking(config.common_requirements()?))
}

fn asking(match_expressions: Vec<Requirement>) -> Selector {
    Selector {
        match_expressions,
        ..Selector::default()
    }
}

#[test]
fn common_part_goes_to_the_api_server() {
    for (one, other, expected) in [
        (
            "gardener.cloud/role in controlplane; role in apiserver",
            "gardener.cloud/role in controlplane; role notin apiserver,main",
            "gardener.cloud/role in controlplane",
        ),
        ("k notin a,b", "k notin b,a", "k notin a,b"),
        ("k notin a", "k notin a,b", ""),
        ("k", "!k", ""),
        ("!k", "l; !k", "!k"),
        ("k in b", "", ""),
        ("k=a; l", "k in a; m", "k in a"),
    ] {
        let both = [one, other].map(|text| Some(selector(text)));
        assert_eq!(common(&both), Some(selector(expected)), "{one}; {other}");
    }
}

/// Nothing has to be asked for then; it is no empty selector.
#[test]
fn null_selects_nothing() {
    let [some, every] = ["k", ""].map(|text| Some(selector(text)));
    assert_eq!(common(&[]), None);
    assert_eq!(common(&[None, None]), None);
    assert_eq!(common(&[None, some.clone()]), some);
    assert_eq!(common(&[some, every.clone()]), every);
}

proptest! {
    #[test]
    fn selectors_mean_what_they_say(
        all in vec(vec("[kl]=[abc]|!?[kl]|[kl] (not)?in [abc](,[abc])?", 0..4), 1..4),
        labels in btree_map("[kl]", "[abcd]?", 0..3),
    ) {
        let all: Vec<_> = all.iter().map(|parts| selector(&parts.join("; "))).collect();
        let common = common(&all.iter().cloned().map(Some).collect::<Vec<_>>()).expect("selectors");
        for selector in &all {
            let is_selected = by_kube(selector).matches(&labels);
            prop_assert_eq!(selector.matches(&labels), is_selected, "{:?} {:?}", selector, labels);
            prop_assert!(!is_selected || common.matches(&labels), "{:?} {:?}", common, labels);
            let asked = asking(selector.requirements());
            prop_assert_eq!(asked.matches(&labels), is_selected, "{:?} {:?}", asked, labels);
            let parts = asked.match_expressions.iter().map(ToString::to_string);
            prop_assert_eq!(parts.collect::<Vec<_>>().join(","), by_kube(&asked).to_string());
        }
    }
}
