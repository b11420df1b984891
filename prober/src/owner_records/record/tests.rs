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
const NO_NAME: OwnerAnswer = OwnerAnswer::Unresolved(Unresolved::NoName);

fn elsewhere() -> OwnerAnswer {
    OwnerAnswer::Elsewhere("there".to_owned())
}

#[test]
fn a_record_that_says_our_value_is_ours_and_any_other_value_is_not() {
    let question = Question::of(&check(), &facts()).expect("a question");
    assert_eq!(
        (&*question.name, &*question.ours),
        ("owner.s.p.example.org", "here")
    );
    let other = |value: &str| OwnerAnswer::Elsewhere(value.to_owned());
    let ambiguous = || OwnerAnswer::Unresolved(Unresolved::Ambiguous);
    for (records, judged) in [
        (&["here"][..], OURS),
        (&["here", "here"], OURS),
        (&["there", "there"], elsewhere()),
        (&["Here"], other("Here")),
        (&["here "], other("here ")),
        (&["\"here\""], other("\"here\"")),
        (&[""], other("")),
        (&[], OwnerAnswer::Unresolved(Unresolved::NoRecord)),
        (&["here", "there"], ambiguous()),
        (&["there", "elsewhere"], ambiguous()),
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

#[test]
fn a_standing_is_what_the_answers_so_far_tell() {
    let elsewhere_at = |second| Ownership::Elsewhere {
        checked: Some(at(second)),
    };
    // Nothing is begun on what was confirmed while checks fail.
    let failing = Ownership::Elsewhere { checked: None };
    let (ours, doubted) = (Ownership::Ours, Ownership::Doubted);
    let third = || OwnerAnswer::Elsewhere("third".to_owned());
    // What checks have said, each sent at that second and answered at once.
    for (answers, second, standing) in [
        // What was never resolved is tolerated from the beginning.
        (
            vec![(0.5, FAILED), (200.0, NO_NAME)],
            299.9,
            Ownership::Unproven(Unresolved::NoName),
        ),
        (
            vec![(0.5, FAILED), (200.0, NO_NAME)],
            300.0,
            Ownership::Unresolved(Unresolved::NoName),
        ),
        // Failures are tolerated from the first one on.
        (
            vec![(0.0, OURS), (30.0, FAILED), (31.0, FAILED)],
            329.9,
            ours,
        ),
        (
            vec![(0.0, OURS), (30.0, FAILED), (31.0, FAILED)],
            330.0,
            Ownership::Unresolved(Unresolved::Server),
        ),
        (vec![(0.0, elsewhere()), (30.0, FAILED)], 329.9, doubted),
        (
            vec![(0.0, elsewhere()), (30.0, FAILED)],
            330.0,
            Ownership::Unresolved(Unresolved::Server),
        ),
        (
            vec![(0.0, OURS), (30.0, FAILED), (100.0, OURS), (130.0, FAILED)],
            400.0,
            ours,
        ),
        // The next check was due at 30 s, and would have been over 2 s later: a process that did not
        // run for longer than is tolerated knows nothing any more.
        (vec![(0.0, OURS)], 331.9, ours),
        (
            vec![(0.0, OURS)],
            332.0,
            Ownership::Unresolved(Unresolved::Timeout),
        ),
        // Two checks in a row confirm that it is elsewhere.
        (vec![(0.0, elsewhere())], 70.0, doubted),
        (
            vec![(0.0, elsewhere()), (1.0, elsewhere())],
            70.0,
            elsewhere_at(1.0),
        ),
        (
            vec![(0.0, elsewhere()), (1.0, third())],
            70.0,
            elsewhere_at(1.0),
        ),
        (
            vec![(0.0, elsewhere()), (1.0, OURS), (2.0, elsewhere())],
            70.0,
            doubted,
        ),
        (
            vec![(0.0, elsewhere()), (1.0, FAILED), (2.0, elsewhere())],
            70.0,
            doubted,
        ),
        (
            vec![(0.0, elsewhere()), (1.0, elsewhere()), (2.0, FAILED)],
            70.0,
            failing,
        ),
        (
            vec![
                (0.0, elsewhere()),
                (1.0, elsewhere()),
                (2.0, FAILED),
                (3.0, elsewhere()),
            ],
            70.0,
            elsewhere_at(3.0),
        ),
        (
            vec![(0.0, elsewhere()), (1.0, elsewhere()), (2.0, OURS)],
            70.0,
            ours,
        ),
    ] {
        let mut record = OwnerRecord::new(at(0.0));
        for (second, answer) in answers.clone() {
            record.answered(answer, at(second), &check(), at(second), 0.0);
        }
        assert_eq!(
            record.standing(&check(), at(second)),
            standing,
            "{answers:?} {second}"
        );
    }
}

#[test]
fn checks_are_an_interval_apart_and_sooner_while_they_fail() {
    let mut record = OwnerRecord::new(at(0.0));
    let mut now = 0.0;
    for (answer, chance, wait) in [
        (OURS, 0.0, 30.0),
        (OURS, 0.0, 30.0),
        (OURS, 1.0, 27.0),
        (FAILED, 0.0, 1.0),
        (FAILED, 0.0, 2.0),
        (FAILED, 0.0, 4.0),
        (FAILED, 0.0, 8.0),
        (FAILED, 0.0, 16.0),
        (FAILED, 0.0, 30.0),
        (FAILED, 0.0, 30.0),
        (OURS, 0.0, 30.0),
        (FAILED, 0.0, 1.0),
        (elsewhere(), 0.0, 1.0),
        (elsewhere(), 0.0, 30.0),
        (elsewhere(), 0.0, 30.0),
    ] {
        record.answered(answer, at(now), &check(), at(now), chance);
        assert_eq!(record.next(), at(now + wait));
        now += wait;
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
