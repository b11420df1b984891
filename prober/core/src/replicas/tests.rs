use proptest::prelude::*;

use super::*;

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

fn ignored(observed: Observed) -> Observed {
    Observed {
        marks: Marks {
            ignored: true,
            ..observed.marks
        },
        ..observed
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

fn down(observed: &Observed) -> Observed {
    after(observed, scale_down(observed, true))
}

fn up(observed: &Observed) -> Observed {
    after(observed, scale_up(observed, Scope::All, false))
}

#[test]
fn scale_up_undoes_a_scale_down() {
    let running = observed(2, None, false);
    let write = scale_down(&running, true).expect("a write");
    assert_eq!(
        write.marks,
        Marks {
            replicas: Some("2".to_owned()),
            held_down: true,
            ignored: false
        }
    );
    assert_eq!(write.replicas, Some(0));
    assert_eq!(down(&running), observed(0, Some("2"), true));
    assert_eq!(up(&down(&running)), running);
}

#[test]
fn zero_stays_and_comes_up_with_1() {
    // Rule 63
    let stopped = observed(0, None, false);
    assert_eq!(scale_down(&stopped, true), None);
    assert_eq!(up(&stopped), observed(1, None, false));
    assert_eq!(
        [0, 1, 2].map(|replicas| up(&down(&observed(replicas, None, false))).replicas),
        [1, 1, 2]
    );
}

#[test]
fn ignored_is_left_alone_both_ways() {
    // Rule 67: a marker is removed, memory and replicas stay.
    for (replicas, memory) in [(2, None), (0, None), (0, Some("2"))] {
        let unmarked = ignored(observed(replicas, memory, false));
        assert_eq!(scale_down(&unmarked, true), None);
        assert_eq!(scale_up(&unmarked, Scope::All, false), None);
        let marked = ignored(observed(replicas, memory, true));
        assert_eq!(down(&marked), unmarked);
        assert_eq!(up(&marked), unmarked);
        assert_eq!(
            after(&marked, scale_up(&marked, Scope::HeldDown, true)),
            unmarked
        );
    }
}

#[test]
fn only_gos_words_for_true_ignore() {
    // Fault 44
    let marks = |word: &str| {
        Marks::of(Some(&BTreeMap::from([(
            IGNORE_SCALING.to_owned(),
            word.to_owned(),
        )])))
    };
    for word in ["1", "t", "T", "true", "TRUE", "True"] {
        assert!(marks(word).ignored, "{word:?}");
    }
    for word in [
        "", "0", "f", "F", "false", "foo", "yes", "on", "tRUE", "truE", " true", "true ", "2", "y",
    ] {
        assert!(!marks(word).ignored, "{word:?}");
    }
}

#[test]
fn marker_counts_by_its_presence() {
    for value in ["", "true", "false", "anything"] {
        let annotations =
            BTreeMap::from([(MELTDOWN_PROTECTION_ACTIVE.to_owned(), value.to_owned())]);
        assert!(Marks::of(Some(&annotations)).held_down, "{value:?}");
    }
    assert_eq!(Marks::of(None), Marks::default());
    let others = BTreeMap::from([(
        "dependency-watchdog.gardener.cloud/other".to_owned(),
        "true".to_owned(),
    )]);
    assert_eq!(Marks::of(Some(&others)), Marks::default());
}

#[test]
fn memory_above_0_is_left_alone() {
    // The Go original leaves such annotations behind.
    let old = observed(1, Some("2"), false);
    assert_eq!(scale_up(&old, Scope::All, false), None);
    assert_eq!(
        down(&old),
        observed(0, Some("1"), true),
        "and is overwritten on the way down"
    );
}

#[test]
fn leftover_marker_is_removed() {
    for memory in [None, Some("2"), Some("foo")] {
        assert_eq!(
            up(&observed(1, memory, true)),
            observed(1, None, false),
            "{memory:?}"
        );
    }
    assert_eq!(
        scale_up(&observed(1, None, true), Scope::All, false).and_then(|write| write.replicas),
        None
    );
}

#[test]
fn unusable_memory_brings_back_1() {
    // D-32, D-33, fault 43
    let unusable = [
        "",
        "foo",
        "abc",
        "-1",
        "0",
        "-0",
        "+0",
        "1.5",
        "1e3",
        " 2",
        "2 ",
        "1_000",
        "0x2",
        "٣",
        "2147483648",
        "99999999999999999999",
        "+",
        "-",
        "++2",
    ];
    for memory in unusable {
        for held_down in [true, false] {
            let stopped = observed(0, Some(memory), held_down);
            let write = scale_up(&stopped, Scope::All, false).expect("a write");
            assert_eq!(
                (write.replicas, write.used_default_replicas),
                (Some(1), true),
                "{memory:?}"
            );
            assert_eq!(
                after(&stopped, Some(write)),
                observed(1, None, false),
                "{memory:?}"
            );
        }
    }
}

#[test]
fn memory_is_in_gos_syntax() {
    for (memory, replicas) in [
        ("1", 1),
        ("2", 2),
        ("+2", 2),
        ("007", 7),
        ("2147483647", i32::MAX),
    ] {
        for held_down in [true, false] {
            let write = scale_up(&observed(0, Some(memory), held_down), Scope::All, false)
                .expect("a write");
            assert_eq!(
                (write.replicas, write.used_default_replicas),
                (Some(replicas), false),
                "{memory:?}"
            );
        }
    }
}

#[test]
fn no_memory_brings_back_1() {
    let used_default_replicas = |held_down| {
        scale_up(&observed(0, None, held_down), Scope::All, false)
            .map(|write| (write.replicas, write.used_default_replicas))
    };
    assert_eq!(used_default_replicas(true), Some((Some(1), true)));
    assert_eq!(used_default_replicas(false), Some((Some(1), false)));
}

#[test]
fn valid_memory_is_never_overwritten() {
    // D-31: an operator set 1 during the outage.
    assert_eq!(
        down(&observed(1, Some("2"), true)),
        observed(0, Some("2"), true)
    );
}

#[test]
fn invalid_memory_counts_as_absent() {
    for memory in [None, Some("foo"), Some("0"), Some("-3")] {
        assert_eq!(
            down(&observed(3, memory, true)),
            observed(0, Some("3"), true),
            "{memory:?}"
        );
    }
}

#[test]
fn only_held_down_comes_back() {
    let stopped = observed(0, Some("2"), false);
    assert_eq!(
        scale_up(&stopped, Scope::HeldDown, false),
        None,
        "one candidate, D-20"
    );
    assert_eq!(
        scale_up(&stopped, Scope::All, true),
        None,
        "restoreOnlyHeldDown"
    );
    let held_down = observed(0, Some("2"), true);
    for (scope, only_held_down) in [
        (Scope::HeldDown, false),
        (Scope::All, true),
        (Scope::HeldDown, true),
    ] {
        let write = scale_up(&held_down, scope, only_held_down);
        assert_eq!(after(&held_down, write), observed(2, None, false));
    }
}

/// Any state that may be found in a cluster.
fn any_observed() -> impl Strategy<Value = Observed> {
    let memory = prop_oneof![
        Just(None),
        any::<i64>().prop_map(|number| Some(number.to_string())),
        (0_i32..5).prop_map(|number| Some(number.to_string())),
        "[-+0-9a-z_. ]{0,11}".prop_map(Some),
    ];
    let replicas = prop_oneof![0_i32..4, 0..=i32::MAX];
    (replicas, memory, any::<bool>(), any::<bool>()).prop_map(
        |(replicas, memory, held_down, ignored)| {
            let marks = Marks {
                replicas: memory,
                held_down,
                ignored,
            };
            Observed {
                replicas,
                marks,
                ..Observed::default()
            }
        },
    )
}

/// Parses an integer from 1 to 2147483647 like `strconv.Atoi`: a sign, then only decimal digits.
fn atoi(text: &str) -> Option<i32> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if negative || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().try_fold(0_i128, |value, digit| {
        value.checked_mul(10)?.checked_add(i128::from(digit - b'0'))
    })?;
    i32::try_from(value).ok().filter(|&value| value >= 1)
}

proptest! {
    #[test]
    fn memory_is_what_go_reads(text in "[-+]?[0-9]{0,11}|[-+0-9_ .xe]{0,6}|.{0,4}") {
        let marks = Marks { replicas: Some(text.clone()), held_down: true, ignored: false };
        prop_assert_eq!(marks.remembered(), atoi(&text));
    }

    #[test]
    fn down_and_up_changes_nothing(replicas in 1..=i32::MAX, memory in prop::option::of("[-+0-9a-z]{0,5}")) {
        let before = observed(replicas, memory.as_deref(), false);
        let held = down(&before);
        prop_assert_eq!(&held, &observed(0, Some(&replicas.to_string()), true));
        prop_assert_eq!(up(&held), observed(replicas, None, false));
    }

    #[test]
    fn second_scale_changes_nothing(found in any_observed(), only_held_down in any::<bool>()) {
        prop_assert_eq!(scale_down(&down(&found), true), None);
        let once = after(&found, scale_up(&found, Scope::All, only_held_down));
        prop_assert_eq!(scale_up(&once, Scope::All, only_held_down), None);
        prop_assert_eq!(scale_up(&once, Scope::HeldDown, only_held_down), None);
    }

    #[test]
    fn each_write_has_a_way_back(found in any_observed()) {
        if let Some(Write { marks, .. }) = scale_down(&found, true)
            && marks.replicas != found.marks.replicas
        {
            let memory = marks.replicas.as_deref().and_then(atoi);
            prop_assert_eq!(memory, Some(found.replicas), "never 0, never anything but what was found");
        }
        if let Some(Write { replicas: Some(replicas), .. }) = scale_up(&found, Scope::All, false) {
            prop_assert!(replicas >= 1);
        }
        if !found.marks.ignored {
            prop_assert_eq!(down(&found).replicas, 0);
            prop_assert!(up(&found).replicas >= 1 && !up(&found).marks.held_down);
        }
    }

    #[test]
    fn write_says_only_what_changes(found in any_observed()) {
        for write in [scale_down(&found, true), scale_up(&found, Scope::All, false), scale_up(&found, Scope::HeldDown, false)] {
            let Some(write) = write else { continue };
            prop_assert_ne!(after(&found, Some(write.clone())), found.clone(), "no write without effect");
            if found.marks.ignored {
                prop_assert_eq!((write.marks.replicas, write.replicas), (found.marks.replicas.clone(), None));
            }
        }
    }

    #[test]
    fn half_a_scale_is_completed(found in any_observed()) {
        prop_assume!(!found.marks.ignored && found.replicas > 0);
        // Kinds with a scale subresource take two writes. On the way down the annotations come
        // first.
        let write = scale_down(&found, true).expect("a write");
        let half = after(&found, Some(Write { replicas: None, ..write }));
        prop_assert_eq!(down(&half), down(&found), "still ill: finished");
        prop_assert_eq!(up(&half), observed(found.replicas, None, false), "healthy again: undone");
        // On the way up the replicas come first.
        let held = down(&found);
        let write = scale_up(&held, Scope::All, false).expect("a write");
        let half = after(&held, Some(Write { marks: held.marks.clone(), ..write }));
        prop_assert_eq!(up(&half), up(&held), "still healthy: finished");
        prop_assert_eq!(down(&half), held, "ill again: undone, with the memory it had");
    }

    #[test]
    fn no_work_for_all_is_none(found in any_observed(), only_held_down in any::<bool>()) {
        let writes = |scope, only_held_down| scale_up(&found, scope, only_held_down).is_some();
        prop_assert!(writes(Scope::All, only_held_down) || !writes(Scope::HeldDown, only_held_down));
        prop_assert!(writes(Scope::All, false) || !writes(Scope::All, true));
    }
}
