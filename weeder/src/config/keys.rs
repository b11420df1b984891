//! Every key of the config file: what it takes, its default, what it means.

use common::document::Key;

const fn key(
    name: &'static str,
    takes: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key {
        name,
        takes,
        default,
        meaning,
    }
}

/// At the top.
pub const ROOT: &[Key] = &[
    key(
        "watchDuration",
        "a duration above 0",
        "5m0s",
        "How long crash-looping pods are deleted after their Service became ready",
    ),
    key(
        "servicesAndDependantSelectors",
        "an object, by the name of the Service",
        "",
        "Which pods wait for which Service, in each namespace that has it",
    ),
    key(
        "maxDeletionsPerOwner",
        "a whole number of at least 1",
        "no limit",
        "How many pods of one owner are deleted at most after one recovery. Not in the Go original",
    ),
];

/// An entry of `servicesAndDependantSelectors`.
pub const SERVICE: &[Key] = &[key(
    "podSelectors",
    "a list of at least one label selector",
    "",
    "The pods that wait for the Service are those that any of these selects",
)];

/// A label selector, as Kubernetes has it.
pub const SELECTOR: &[Key] = &[
    key(
        "matchLabels",
        "an object of labels",
        "none",
        "Labels that the pod must have",
    ),
    key(
        "matchExpressions",
        "a list",
        "none",
        "Requirements on its labels",
    ),
];

/// An entry of `matchExpressions`.
pub const EXPRESSION: &[Key] = &[
    key("key", "a label key", "", "The label"),
    key(
        "operator",
        "In, NotIn, Exists or DoesNotExist",
        "",
        "How the label relates to the values",
    ),
    key(
        "values",
        "a list of label values",
        "none",
        "With In and NotIn at least one",
    ),
];
