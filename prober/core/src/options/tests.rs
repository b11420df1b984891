use super::*;
use crate::tests::scene::{env, table};

/// Annotations such as `pause=true scale-up-stabilization=5s`.
fn overrides(annotations: &str) -> Overrides {
    let named = |(name, value): (&str, &str)| {
        let key = format!("dependency-watchdog.gardener.cloud/{name}");
        (key, value.to_owned())
    };
    let annotations = annotations.split(' ').filter_map(|one| one.split_once('='));
    Overrides::of(&annotations.map(named).collect())
}

#[test]
fn namespace_overrules_garden() {
    // The opposite of the defaults.
    let config = Config {
        restore_only_held_down: true,
        scale_up_stabilization: Duration::from_secs(90),
        standby_protects: false,
        ..Config::clone(&env([]).config)
    };
    for [garden, own, expected] in table(
        "
        | | false default, true config, 90s config, false config
        other=true | other=true | false default, true config, 90s config, false config
        pause=true restore-only-held-down=false scale-up-stabilization=5s standby-protects=true | | true garden, false garden, 5s garden, true garden
        pause=true restore-only-held-down=false scale-up-stabilization=5s standby-protects=true | pause=false | false namespace, false garden, 5s garden, true garden
        pause=true restore-only-held-down=false scale-up-stabilization=5s standby-protects=true | restore-only-held-down=true | true garden, true namespace, 5s garden, true garden
        pause=true restore-only-held-down=false scale-up-stabilization=5s standby-protects=true | scale-up-stabilization=0 | true garden, false garden, 0ns namespace, true garden
        pause=true restore-only-held-down=false scale-up-stabilization=5s standby-protects=true | standby-protects=false | true garden, false garden, 5s garden, false namespace
        # Refused values.
        pause=true scale-up-stabilization=soon | pause=no scale-up-stabilization=later | true garden, true config, 90s config, false config
        ",
    ) {
        let (garden, own) = (overrides(garden), overrides(own));
        let resolved = ResolvedOptions::resolve(&config, Some(&garden), Some(&own));
        let flag = |flag: Sourced<bool>| format!("{} {}", flag.value, flag.from.into_str());
        let Sourced { value, from } = resolved.scale_up_stabilization;
        let shown = [
            flag(resolved.pause),
            flag(resolved.restore_only_held_down),
            format!("{value:?} {}", from.into_str()),
            flag(resolved.standby_protects),
        ];
        assert_eq!(shown.join(", "), expected);
    }
}

#[test]
fn refused_value_leaves_outer() {
    // It is quoted in part.
    let (long, shown) = ("\n".repeat(100_000), "\\n".repeat(SHOWN));
    #[rustfmt::skip]
    let cases = [
        ("pause", "yes", "\"yes\" is refused, expected true or false"),
        ("pause", "", "\"\" is refused, expected true or false"),
        ("pause", &*long, &*format!("\"{shown}\" is refused, expected true or false")),
        ("scale-up-stabilization", "-5s", "\"-5s\" is refused, expected a duration like \"30s\" or \"1h15m\", not negative"),
        ("scale-up-stabilization", "5", "\"5\" is refused, expected a duration like \"30s\""),
    ];
    for (name, value, expected) in cases {
        let overrides = overrides(&format!("{name}={value}"));
        assert!(!overrides.is_empty(), "{name}");
        let [refused] = &overrides.refused[..] else {
            panic!("{overrides:?}")
        };
        let expected = format!("dependency-watchdog.gardener.cloud/{name}: {expected}");
        assert!(refused.starts_with(&expected), "{refused}");
    }
}
