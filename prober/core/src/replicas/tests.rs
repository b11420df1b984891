use super::*;
use crate::tests::scene::table;

fn observed(replicas: i32, memory: Option<&str>, held_down: bool) -> Observed {
    let marks = Marks {
        replicas: memory.map(str::to_owned),
        held_down,
        ignored: false,
    };
    Observed {
        replicas,
        marks,
        ..Observed::default()
    }
}

/// State of a resource after a write, as the API server applies it.
fn after(observed: &Observed, write: Option<Write>) -> Observed {
    match write {
        Some(write) => Observed {
            replicas: write.replicas.unwrap_or(observed.replicas),
            marks: write.marks,
            ..observed.clone()
        },
        None => observed.clone(),
    }
}

/// Reads a state: `2`, `0 of 2 held`, `0 of 2 ignored`.
fn state(text: &str) -> Observed {
    let (replicas, words) = text.split_once(' ').unwrap_or((text, ""));
    let memory = words
        .strip_prefix("of ")
        .and_then(|words| words.split(' ').next());
    let mut state = observed(
        replicas.parse().expect(text),
        memory,
        words.contains("held"),
    );
    state.marks.ignored = words.contains("ignored");
    state
}

#[test]
fn writes_of_each_state() {
    // A write changes something, and is not made twice.
    let becomes = |before: &str, expected: &str, write: &dyn Fn(&Observed) -> Option<Write>| {
        let found = state(before);
        let written = write(&found);
        assert_eq!(written.is_some(), found != state(expected), "{before}");
        let default = written.as_ref().is_some_and(|it| it.used_default_replicas);
        assert_eq!(default, expected.ends_with("default"), "{before}");
        let after = after(&found, written);
        assert_eq!(after, state(expected), "{before}");
        assert_eq!(write(&after), None, "{before}, twice");
    };
    // What it becomes on the way down and on the way up, and where only what is held down comes up;
    // `default` says that the saved number cannot be used.
    for [before, down, up, only_held_down] in table(
        "
        2 | 0 of 2 held | 2 | 2
        1 | 0 of 1 held | 1 | 1
        # Rule 63.
        0 | 0 | 1 | 0
        0 of 2 held | 0 of 2 held | 2 | 2
        0 held | 0 held | 1 default | 1 default
        0 of foo held | 0 of foo held | 1 default | 1 default
        0 of 0 held | 0 of 0 held | 1 default | 1 default
        0 of +2 held | 0 of +2 held | 2 | 2
        # Somebody has taken the marker, or a Go replica.
        0 of 2 | 0 of 2 held | 2 | 0 of 2
        0 of foo | 0 of foo | 1 default | 0 of foo
        # The Go original leaves such annotations behind.
        1 of 2 | 0 of 1 held | 1 of 2 | 1 of 2
        # It takes two writes: on the way down annotations first, on the way up replicas.
        2 of 2 held | 0 of 2 held | 2 | 2
        2147483647 | 0 of 2147483647 held | 2147483647 | 2147483647
        0 of 2147483648 held | 0 of 2147483648 held | 1 default | 1 default
        # D-31: an operator set 1 during the outage.
        1 of 2 held | 0 of 2 held | 1 | 1
        3 held | 0 of 3 held | 3 | 3
        3 of foo held | 0 of 3 held | 3 | 3
        3 of 0 held | 0 of 3 held | 3 | 3
        3 of -3 held | 0 of 3 held | 3 | 3
        # Rule 67: a marker is removed, memory and replicas stay.
        2 ignored | 2 ignored | 2 ignored | 2 ignored
        0 ignored | 0 ignored | 0 ignored | 0 ignored
        0 of 2 ignored | 0 of 2 ignored | 0 of 2 ignored | 0 of 2 ignored
        2 held ignored | 2 ignored | 2 ignored | 2 ignored
        0 of 2 held ignored | 0 of 2 ignored | 0 of 2 ignored | 0 of 2 ignored
        ",
    ) {
        becomes(before, down, &|found| scale_down(found, true));
        for (scope, only, expected) in [
            (Scope::All, false, up),
            (Scope::HeldDown, false, only_held_down),
            (Scope::All, true, only_held_down),
            (Scope::HeldDown, true, only_held_down),
        ] {
            becomes(before, expected, &|found| scale_up(found, scope, only));
        }
    }
    assert_eq!(scale_down(&state("0 of 2"), false), None, "never held down");
}

#[test]
fn only_gos_words_for_true_ignore() {
    // Fault 44; the marker counts by its presence.
    let marks = |key: &str, word: &str| {
        Marks::of(Some(&BTreeMap::from([(key.to_owned(), word.to_owned())])))
    };
    let yes = ["1", "t", "T", "true", "TRUE", "True"];
    let no = ["", "0", "f", "false", "yes", "tRUE", " true", "true ", "2"];
    for word in yes.into_iter().chain(no) {
        assert_eq!(
            marks(IGNORE_SCALING, word).ignored,
            yes.contains(&word),
            "{word:?}"
        );
        assert!(
            marks(MELTDOWN_PROTECTION_ACTIVE, word).held_down,
            "{word:?}"
        );
        let other = marks("dependency-watchdog.gardener.cloud/other", word);
        assert_eq!(other, Marks::default());
    }
    assert_eq!(Marks::of(None), Marks::default());
}

#[test]
fn memory_is_what_go_reads() {
    // As `strconv.Atoi`: a sign, then only decimal digits; from 1 to 2147483647.
    for (text, expected) in [
        ("1", Some(1)),
        ("+2", Some(2)),
        ("002", Some(2)),
        ("2147483647", Some(i32::MAX)),
        ("2147483648", None),
        ("99999999999999999999", None),
        ("0", None),
        ("-0", None),
        ("-3", None),
        ("", None),
        ("+", None),
        ("++2", None),
        (" 2", None),
        ("2 ", None),
        ("1_000", None),
        ("2.0", None),
        ("2e3", None),
        ("0x2", None),
        ("\u{662}", None),
    ] {
        let found = observed(0, Some(text), true).marks.remembered();
        assert_eq!(found, expected, "{text:?}");
    }
}
