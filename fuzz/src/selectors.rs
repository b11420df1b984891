//! Label selectors, requirement by requirement.

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use weeder::core::selector::{Labels, Operator, Requirement, Selector};

/// Selectors and the pods they are tried on.
#[derive(Arbitrary, Debug)]
pub struct Case {
    selectors: Vec<Vec<Asked>>,
    pods: Vec<BTreeMap<Word, Word>>,
}

#[derive(Arbitrary, Debug)]
struct Asked {
    key: Word,
    operator: Relation,
    values: Vec<Word>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Relation {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// Few words, so that they meet, and any others.
#[derive(Arbitrary, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    A,
    B,
    Empty,
    Other(String),
}

impl Word {
    fn text(&self) -> &str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::Empty => "",
            Self::Other(text) => text,
        }
    }
}

/// A selector matches what each of its requirements allows; what several have in common misses nothing; and the form that goes
/// into a request says the same.
pub fn check(case: &Case) {
    let pods: Vec<Labels> = case
        .pods
        .iter()
        .map(|pod| pod.iter().map(|(key, value)| (key.text().to_owned(), value.text().to_owned())).collect())
        .collect();
    let mut selectors = Vec::new();
    for asked in &case.selectors {
        let requirements: Result<Vec<_>, _> = asked.iter().map(Asked::requirement).collect();
        let Ok(requirements) = requirements else { continue };
        let selector = Selector::all_of(requirements);
        for pod in &pods {
            assert_eq!(selector.matches(pod), asked.iter().all(|asked| asked.allows(pod)), "{asked:?} on {pod:?}");
            assert!(selector.is_nothing() || says(&selector.to_string(), pod) == selector.matches(pod), "{selector} on {pod:?}");
        }
        selectors.push(selector);
    }
    let common = Selector::common(&selectors);
    assert_eq!(common.is_nothing(), selectors.iter().all(Selector::is_nothing));
    for pod in pods.iter().filter(|pod| selectors.iter().any(|selector| selector.matches(pod))) {
        assert!(common.matches(pod), "{common} misses {pod:?}");
        assert!(says(&common.to_string(), pod), "{common} does not ask for {pod:?}");
    }
}

impl Asked {
    fn requirement(&self) -> Result<Requirement, String> {
        let operator = match self.operator {
            Relation::In => Operator::In,
            Relation::NotIn => Operator::NotIn,
            Relation::Exists => Operator::Exists,
            Relation::DoesNotExist => Operator::DoesNotExist,
        };
        let values = self.values.iter().map(|value| value.text().to_owned()).collect();
        Requirement::try_new(self.key.text(), operator, values).map_err(|refusal| {
            let message = refusal.to_string();
            super::must_be_one_line(&message);
            message
        })
    }

    fn allows(&self, pod: &Labels) -> bool {
        let label = pod.get(self.key.text());
        let listed = label.is_some_and(|label| self.values.iter().any(|value| value.text() == label));
        match self.operator {
            Relation::In => listed,
            Relation::NotIn => !listed,
            Relation::Exists => label.is_some(),
            Relation::DoesNotExist => label.is_none(),
        }
    }
}

/// What an API server would make of `key in (a,b),key notin (c),key,!key`, as far as it is written here.
fn says(query: &str, pod: &Labels) -> bool {
    let mut rest = query;
    while !rest.is_empty() {
        let open = rest.find('(').unwrap_or(rest.len());
        let end = match rest.find(',') {
            Some(comma) if comma < open => comma,
            _ => rest.find(')').map_or(rest.len(), |close| close + 1),
        };
        let (requirement, after) = rest.split_at(end);
        rest = after.strip_prefix(',').unwrap_or(after);
        let fulfilled = if let Some(key) = requirement.strip_prefix('!') {
            !pod.contains_key(key)
        } else if let Some((key, values)) = requirement.split_once(" in ") {
            pod.get(key).is_some_and(|label| lists(values, label))
        } else if let Some((key, values)) = requirement.split_once(" notin ") {
            !pod.get(key).is_some_and(|label| lists(values, label))
        } else {
            pod.contains_key(requirement)
        };
        if !fulfilled {
            return false;
        }
    }
    true
}

fn lists(values: &str, label: &str) -> bool {
    values.trim_start_matches('(').trim_end_matches(')').split(',').any(|value| value == label)
}
