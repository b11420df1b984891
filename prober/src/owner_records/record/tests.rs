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

fn elsewhere() -> OwnerAnswer {
    OwnerAnswer::Elsewhere("there".to_owned())
}

fn failed() -> OwnerAnswer {
    OwnerAnswer::Unresolved(Unresolved::Server)
}

/// A record whose checks, each sent at that second and answered at once, said this.
fn record(answers: impl IntoIterator<Item = (f64, OwnerAnswer)>) -> OwnerRecord {
    let mut record = OwnerRecord::new(at(0.0));
    for (second, answer) in answers {
        record.answered(answer, at(second), &check(), at(second), 0.0);
    }
    record
}

#[test]
fn a_record_that_says_our_value_is_ours_and_any_other_value_is_not() {
    let question = Question::of(&check(), &facts()).expect("a question");
    assert_eq!(
        question,
        Question {
            name: "owner.s.p.example.org".to_owned(),
            ours: "here".to_owned()
        }
    );
    let judged = |records: &[&str]| {
        question.judge(&records.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(judged(&["here"]), OwnerAnswer::Ours);
    assert_eq!(judged(&["here", "here"]), OwnerAnswer::Ours);
    assert_eq!(judged(&["there", "there"]), elsewhere());
    for odd in ["Here", "here ", "\"here\"", ""] {
        assert_eq!(judged(&[odd]), OwnerAnswer::Elsewhere(odd.to_owned()));
    }
    assert_eq!(judged(&[]), OwnerAnswer::Unresolved(Unresolved::NoRecord));
    for records in [["here", "there"], ["there", "elsewhere"]] {
        assert_eq!(
            judged(&records),
            OwnerAnswer::Unresolved(Unresolved::Ambiguous)
        );
    }
}

#[test]
fn what_the_cluster_does_not_say_makes_no_question() {
    for incomplete in [
        Facts {
            domain: None,
            ..facts()
        },
        Facts {
            seed: None,
            ..facts()
        },
    ] {
        assert_eq!(Question::of(&check(), &incomplete), None);
    }
    let odd = Facts {
        domain: Some("a b".to_owned()),
        ..facts()
    };
    assert_eq!(Question::of(&check(), &odd), None);
    let check = OwnerCheck {
        name: Template::parse_name("{{namespace}}.o").expect("a name"),
        ..check()
    };
    let question = Question::of(
        &check,
        &Facts {
            domain: None,
            ..facts()
        },
    );
    assert_eq!(question.expect("needs no domain").name, "shoot--p--s.o");
}

#[test]
fn before_the_first_check_is_over_nothing_is_known_for_as_long_as_it_may_take() {
    let mut record = record([]);
    assert_eq!(record.next(), at(0.0));
    assert_eq!(
        (
            record.standing(&check(), at(9.0)),
            record.turns_at(&check(), at(9.0))
        ),
        (Ownership::NotChecked, Some(at(300.0)))
    );
    record.ask(at(10.0));
    assert_eq!(record.standing(&check(), at(11.9)), Ownership::NotChecked);
    assert_eq!(record.turns_at(&check(), at(11.9)), Some(at(12.0)));
    assert_eq!(
        record.standing(&check(), at(12.0)),
        Ownership::Unproven(Unresolved::Timeout)
    );
    assert_eq!(record.turns_at(&check(), at(12.0)), Some(at(300.0)));
    assert_eq!(
        record.standing(&check(), at(300.0)),
        Ownership::Unresolved(Unresolved::Timeout)
    );
    assert_eq!(record.turns_at(&check(), at(300.0)), None);
}

#[test]
fn a_record_that_was_never_resolved_is_tolerated_from_the_beginning() {
    let record = record([
        (0.5, failed()),
        (200.0, OwnerAnswer::Unresolved(Unresolved::NoName)),
    ]);
    assert_eq!(
        record.standing(&check(), at(299.9)),
        Ownership::Unproven(Unresolved::NoName)
    );
    assert_eq!(
        record.standing(&check(), at(300.0)),
        Ownership::Unresolved(Unresolved::NoName)
    );
}

#[test]
fn failures_are_tolerated_from_the_first_one_on() {
    for (answer, standing) in [
        (OwnerAnswer::Ours, Ownership::Ours),
        (elsewhere(), Ownership::Doubted),
    ] {
        let record = record([(0.0, answer), (30.0, failed()), (31.0, failed())]);
        assert_eq!(record.standing(&check(), at(329.9)), standing);
        assert_eq!(
            record.standing(&check(), at(330.0)),
            Ownership::Unresolved(Unresolved::Server)
        );
        assert_eq!(record.turns_at(&check(), at(40.0)), Some(at(330.0)));
    }
    let again = record([
        (0.0, OwnerAnswer::Ours),
        (30.0, failed()),
        (100.0, OwnerAnswer::Ours),
        (130.0, failed()),
    ]);
    assert_eq!(again.standing(&check(), at(400.0)), Ownership::Ours);
}

#[test]
fn a_process_that_did_not_run_for_longer_than_is_tolerated_knows_nothing_any_more() {
    let record = record([(0.0, OwnerAnswer::Ours)]);
    // The next check was due at 30 s, and would have been over 2 s later.
    assert_eq!(record.standing(&check(), at(331.9)), Ownership::Ours);
    assert_eq!(
        record.standing(&check(), at(332.0)),
        Ownership::Unresolved(Unresolved::Timeout)
    );
}

#[test]
fn elsewhere_is_confirmed_by_two_checks_in_a_row() {
    let standing = |answers: Vec<(f64, OwnerAnswer)>| record(answers).standing(&check(), at(70.0));
    let confirmed = |second| Ownership::Elsewhere {
        checked: Some(at(second)),
    };
    let unconfirmed = Ownership::Doubted;
    assert_eq!(standing(vec![(0.0, elsewhere())]), unconfirmed);
    assert_eq!(
        standing(vec![(0.0, elsewhere()), (1.0, elsewhere())]),
        confirmed(1.0)
    );
    assert_eq!(
        standing(vec![
            (0.0, elsewhere()),
            (1.0, OwnerAnswer::Elsewhere("third".to_owned()))
        ]),
        confirmed(1.0)
    );
    assert_eq!(
        standing(vec![
            (0.0, elsewhere()),
            (1.0, OwnerAnswer::Ours),
            (2.0, elsewhere())
        ]),
        unconfirmed
    );
    assert_eq!(
        standing(vec![
            (0.0, elsewhere()),
            (1.0, failed()),
            (2.0, elsewhere())
        ]),
        unconfirmed
    );
    // What was confirmed stays so; nothing is begun on it while checks fail.
    let failing = Ownership::Elsewhere { checked: None };
    assert_eq!(
        standing(vec![
            (0.0, elsewhere()),
            (1.0, elsewhere()),
            (2.0, failed())
        ]),
        failing
    );
    assert_eq!(
        standing(vec![
            (0.0, elsewhere()),
            (1.0, elsewhere()),
            (2.0, failed()),
            (3.0, elsewhere())
        ]),
        confirmed(3.0)
    );
    assert_eq!(
        standing(vec![
            (0.0, elsewhere()),
            (1.0, elsewhere()),
            (2.0, OwnerAnswer::Ours)
        ]),
        Ownership::Ours
    );
}

#[test]
fn checks_are_an_interval_apart_and_sooner_while_they_fail() {
    let mut record = OwnerRecord::new(at(0.0));
    let mut now = 0.0;
    let mut waits = |answers: &[OwnerAnswer], chance: f64| {
        let wait = |answer: &OwnerAnswer| {
            record.answered(answer.clone(), at(now), &check(), at(now), chance);
            let wait = (record.next() - at(now)).as_seconds_f64();
            now += wait;
            wait
        };
        answers.iter().map(wait).collect::<Vec<_>>()
    };
    assert_eq!(
        waits(&[OwnerAnswer::Ours, OwnerAnswer::Ours], 0.0),
        [30.0, 30.0]
    );
    assert_eq!(waits(&[OwnerAnswer::Ours], 1.0), [27.0]);
    assert_eq!(
        waits(
            &[
                failed(),
                failed(),
                failed(),
                failed(),
                failed(),
                failed(),
                failed()
            ],
            0.0
        ),
        [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    );
    assert_eq!(waits(&[OwnerAnswer::Ours, failed()], 0.0), [30.0, 1.0]);
    assert_eq!(
        waits(&[elsewhere(), elsewhere(), elsewhere()], 0.0),
        [1.0, 30.0, 30.0]
    );
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
