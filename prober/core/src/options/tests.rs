use super::*;
use crate::tests::scene::env;

/// A config in which the three options are the opposite of their defaults.
fn config() -> Config {
    Config {
        restore_only_held_down: true,
        scale_up_stabilization: Duration::from_secs(90),
        standby_protects: false,
        ..Config::clone(&env([]).config)
    }
}

fn overrides(annotations: &[(&str, &str)]) -> Overrides {
    Overrides::of(
        &annotations
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    )
}

fn resolved(garden: &[(&str, &str)], own: &[(&str, &str)]) -> ResolvedOptions {
    ResolvedOptions::resolve(&config(), Some(&overrides(garden)), Some(&overrides(own)))
}

fn shown(options: &ResolvedOptions) -> [String; 4] {
    let flag =
        |name, flag: Sourced<bool>| format!("{name} {} ({})", flag.value, flag.from.into_str());
    let Sourced { value, from } = options.scale_up_stabilization;
    [
        flag("pause", options.pause),
        flag("restoreOnlyHeldDown", options.restore_only_held_down),
        format!("scaleUpStabilization {value:?} ({})", from.into_str()),
        flag("standbyProtects", options.standby_protects),
    ]
}

#[test]
fn config_holds_by_default() {
    let expected = [
        "pause false (default)",
        "restoreOnlyHeldDown true (config)",
        "scaleUpStabilization 90s (config)",
        "standbyProtects false (config)",
    ];
    assert_eq!(
        shown(&ResolvedOptions::resolve(&config(), None, None)),
        expected
    );
    assert_eq!(
        shown(&resolved(&[], &[("example.org/pause", "true")])),
        expected
    );
}

#[test]
fn namespace_overrules_garden() {
    let garden = [
        (PAUSE, "true"),
        (RESTORE_ONLY_HELD_DOWN, "false"),
        (SCALE_UP_STABILIZATION, "5s"),
        (STANDBY_PROTECTS, "true"),
    ];
    let by_garden = [
        "pause true (garden)",
        "restoreOnlyHeldDown false (garden)",
        "scaleUpStabilization 5s (garden)",
        "standbyProtects true (garden)",
    ];
    assert_eq!(shown(&resolved(&garden, &[])), by_garden);
    let own = [
        (PAUSE, "false"),
        (RESTORE_ONLY_HELD_DOWN, "true"),
        (SCALE_UP_STABILIZATION, "0"),
        (STANDBY_PROTECTS, "false"),
    ];
    let by_namespace = [
        "pause false (namespace)",
        "restoreOnlyHeldDown true (namespace)",
        "scaleUpStabilization 0ns (namespace)",
        "standbyProtects false (namespace)",
    ];
    assert_eq!(shown(&resolved(&garden, &own)), by_namespace);
    // Each on its own.
    for at in 0..own.len() {
        let mut expected = by_garden;
        expected[at] = by_namespace[at];
        assert_eq!(shown(&resolved(&garden, &own[at..=at])), expected);
    }
}

#[test]
fn refused_value_leaves_outer() {
    #[rustfmt::skip]
    let cases = [
        (PAUSE, "yes", "\"yes\" is refused, expected true or false"),
        (PAUSE, "", "\"\" is refused, expected true or false"),
        (STANDBY_PROTECTS, " true", "\" true\" is refused, expected true or false"),
        (SCALE_UP_STABILIZATION, "-5s", "\"-5s\" is refused, expected a duration like \"30s\" or \"1h15m\", not negative"),
        (SCALE_UP_STABILIZATION, "5", "\"5\" is refused, expected a duration like \"30s\""),
    ];
    for (annotation, value, expected) in cases {
        let refused = overrides(&[(annotation, value)]).refused;
        let [refused] = &refused[..] else {
            panic!("{refused:?}")
        };
        assert_eq!(refused.annotation, annotation);
        assert!(refused.reason.starts_with(expected), "{refused}");
    }
    let garden = [(PAUSE, "true"), (SCALE_UP_STABILIZATION, "soon")];
    let options = resolved(&garden, &[(PAUSE, "no"), (SCALE_UP_STABILIZATION, "later")]);
    assert_eq!(
        options.pause,
        Sourced {
            value: true,
            from: Source::Garden
        }
    );
    assert_eq!(
        options.scale_up_stabilization,
        Sourced {
            value: Duration::from_secs(90),
            from: Source::Config
        }
    );
}

#[test]
fn refused_value_is_quoted_in_part() {
    let refused = overrides(&[(PAUSE, &format!("\n{}", "x".repeat(100_000)))]).refused;
    assert!(
        refused[0].reason.len() < 100 && !refused[0].reason.contains('\n'),
        "{}",
        refused[0]
    );
}

#[test]
fn refused_value_is_no_absence() {
    assert!(overrides(&[("example.org/pause", "true")]).is_empty());
    assert!(!overrides(&[(PAUSE, "false")]).is_empty());
    assert!(!overrides(&[(PAUSE, "maybe")]).is_empty());
}
