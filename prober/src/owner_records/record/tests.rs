use prober_core::template::Template;

use super::*;
use crate::owner_records::tests;
use crate::tests::at;

fn check() -> OwnerCheck {
    OwnerCheck {
        name: Template::parse_name("owner.{{domain}}").expect("a name"),
        value: Template::parse("{{seed}}").expect("a value"),
        ..tests::check("")
    }
}

fn facts() -> Facts {
    Facts {
        namespace: "shoot--p--s".to_owned(),
        domain: Some("s.p.example.org".to_owned()),
        seed: Some("here".to_owned()),
        seed_uid: Some("uid".to_owned()),
    }
}

const OURS: OwnerAnswer = OwnerAnswer::Ours;
const FAILED: OwnerAnswer = OwnerAnswer::Unresolved(Unresolved::Server);
#[test]
fn a_record_that_says_our_value_is_ours_and_any_other_value_is_not() {
    let question = Question::of(&check(), &facts()).expect("a question");
    assert_eq!(
        (&*question.name, &*question.ours),
        ("owner.s.p.example.org", "here")
    );
    let unresolved = OwnerAnswer::Unresolved;
    for (records, judged) in [
        (&["here"][..], OURS),
        (&["here", "here"], OURS),
        (&["there", "there"], answer("there")),
        (&["Here"], answer("Here")),
        (&["here "], answer("here ")),
        (&["\"here\""], answer("\"here\"")),
        (&[""], answer("")),
        (&[], unresolved(Unresolved::NoRecord)),
        (&["here", "there"], unresolved(Unresolved::Ambiguous)),
        (&["there", "elsewhere"], unresolved(Unresolved::Ambiguous)),
    ] {
        let records: Vec<_> = records.iter().map(ToString::to_string).collect();
        assert_eq!(question.judge(&records), judged, "{records:?}");
    }
}

#[test]
fn what_the_cluster_does_not_say_makes_no_question() {
    let with = |domain: Option<&str>, seed: Option<&str>| Facts {
        domain: domain.map(str::to_owned),
        seed: seed.map(str::to_owned),
        ..facts()
    };
    for (domain, seed) in [
        (None, Some("here")),
        (Some("a.b"), None),
        (Some("a b"), Some("here")),
    ] {
        assert_eq!(Question::of(&check(), &with(domain, seed)), None);
    }
    let check = OwnerCheck {
        name: Template::parse_name("{{namespace}}.o").expect("a name"),
        ..check()
    };
    let question = Question::of(&check, &with(None, Some("here")));
    assert_eq!(question.expect("needs no domain").name, "shoot--p--s.o");
}

#[test]
fn before_the_first_check_is_over_nothing_is_known_for_as_long_as_it_may_take() {
    let mut record = OwnerRecord::new(at(0.0));
    assert_eq!(record.next(), at(0.0));
    for (second, standing, turns_at) in [
        (9.0, Ownership::NotChecked, Some(300.0)),
        // It is asked from 10 s on.
        (11.9, Ownership::NotChecked, Some(12.0)),
        (12.0, Ownership::Unproven(Unresolved::Timeout), Some(300.0)),
        (300.0, Ownership::Unresolved(Unresolved::Timeout), None),
    ] {
        if second > 10.0 {
            record.ask(at(10.0));
        }
        assert_eq!(record.standing(&check(), at(second)), standing);
        assert_eq!(record.turns_at(&check(), at(second)), turns_at.map(at));
    }
}

/// An answer by its word.
fn answer(word: &str) -> OwnerAnswer {
    match word {
        "ours" => OURS,
        "failed" => FAILED,
        "no_name" => OwnerAnswer::Unresolved(Unresolved::NoName),
        seed => OwnerAnswer::Elsewhere(seed.to_owned()),
    }
}

#[test]
fn a_standing_is_what_the_answers_so_far_tell() {
    let shown = |standing: Ownership| match standing {
        Ownership::Unproven(why) | Ownership::Unresolved(why) => {
            format!("{}: {}", standing.into_str(), <&str>::from(why))
        }
        // Nothing is begun on what was confirmed while checks fail.
        Ownership::Elsewhere { checked: None } => "elsewhere, failing".to_owned(),
        Ownership::Elsewhere {
            checked: Some(last),
        } => {
            format!("elsewhere at {}", last.elapsed_since_start().num_seconds())
        }
        other => other.into_str().to_owned(),
    };
    // What checks have said, each sent at that second and answered at once.
    for (answers, second, standing) in [
        // What was never resolved is tolerated from the beginning.
        ("0.5 failed, 200 no_name", 299.9, "unproven: no_name"),
        ("0.5 failed, 200 no_name", 300.0, "unresolved: no_name"),
        // Failures are tolerated from the first one on.
        ("0 ours, 30 failed, 31 failed", 329.9, "ours"),
        ("0 ours, 30 failed, 31 failed", 330.0, "unresolved: server"),
        ("0 there, 30 failed", 329.9, "doubted"),
        ("0 there, 30 failed", 330.0, "unresolved: server"),
        ("0 ours, 30 failed, 100 ours, 130 failed", 400.0, "ours"),
        // The next check was due at 30 s, and would have been over 2 s later: a process that did not
        // run for longer than is tolerated knows nothing any more.
        ("0 ours", 331.9, "ours"),
        ("0 ours", 332.0, "unresolved: timeout"),
        // Two checks in a row confirm that it is elsewhere.
        ("0 there", 70.0, "doubted"),
        ("0 there, 1 there", 70.0, "elsewhere at 1"),
        ("0 there, 1 third", 70.0, "elsewhere at 1"),
        ("0 there, 1 ours, 2 there", 70.0, "doubted"),
        ("0 there, 1 failed, 2 there", 70.0, "doubted"),
        ("0 there, 1 there, 2 failed", 70.0, "elsewhere, failing"),
        (
            "0 there, 1 there, 2 failed, 3 there",
            70.0,
            "elsewhere at 3",
        ),
        ("0 there, 1 there, 2 ours", 70.0, "ours"),
    ] {
        let mut record = OwnerRecord::new(at(0.0));
        for said in answers.split(", ") {
            let (sent, word) = said.split_once(' ').expect("a second");
            let sent = at(sent.parse().expect("a second"));
            record.answered(answer(word), sent, &check(), sent, 0.0);
        }
        let found = shown(record.standing(&check(), at(second)));
        assert_eq!(found, standing, "{answers} {second}");
    }
}

#[test]
fn checks_are_an_interval_apart_and_sooner_while_they_fail() {
    let (mut record, mut now) = (OwnerRecord::new(at(0.0)), 0.0);
    for (answers, chance, waits) in [
        ("ours", 0.0, &[30.0, 30.0][..]),
        ("ours", 1.0, &[27.0]),
        ("failed", 0.0, &[1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]),
        ("ours", 0.0, &[30.0]),
        ("failed", 0.0, &[1.0]),
        ("there", 0.0, &[1.0, 30.0, 30.0]),
    ] {
        for wait in waits {
            record.answered(answer(answers), at(now), &check(), at(now), chance);
            now += wait;
            assert_eq!(record.next(), at(now));
        }
    }
}

#[test]
fn a_shoot_decides_by_where_its_record_says_that_it_belongs() {
    const NOT_WRITTEN: Owner = Owner::Elsewhere {
        passivates_since: None,
    };
    let confirmed = Ownership::Elsewhere {
        checked: Some(at(1.0)),
    };
    for (standing, owner) in [
        (Ownership::Ours, Owner::Here),
        (Ownership::NotChecked, Owner::Unknown),
        (Ownership::Doubted, Owner::Unknown),
        (Ownership::Unproven(Unresolved::Server), Owner::LeaderOnly),
        (Ownership::Elsewhere { checked: None }, NOT_WRITTEN),
        (Ownership::Unresolved(Unresolved::Server), NOT_WRITTEN),
    ] {
        for on_loss in [OnLoss::StandDown, OnLoss::Passivate] {
            assert_eq!(standing.owner(on_loss), owner, "{standing:?}");
        }
    }
    assert_eq!(confirmed.owner(OnLoss::StandDown), NOT_WRITTEN);
    assert_eq!(
        confirmed.owner(OnLoss::Passivate),
        Owner::Elsewhere {
            passivates_since: Some(at(1.0))
        }
    );
}
