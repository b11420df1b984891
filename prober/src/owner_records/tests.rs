use prober_core::template::Template;

use super::*;
use crate::config;
use crate::tests::{CONFIG, at};

pub(super) fn check(more: &str) -> OwnerCheck {
    let check = format!("ownerCheck: {{name: 'owner.{{{{namespace}}}}', value: here, {more}}}\n");
    let config = config::parse(&(CONFIG.to_owned() + &check));
    let check = config.expect("a config").config.owner_check;
    check.expect("a check")
}

fn records(check: &OwnerCheck, namespaces: &[&str]) -> OwnerRecords {
    let records = OwnerRecords::default();
    records.apply(
        Some(check),
        namespaces.iter().map(ToString::to_string),
        at(0.0),
    );
    records
}

fn answer(records: &OwnerRecords, namespace: &str, answer: OwnerAnswer, second: f64) {
    records.answered(namespace, None, answer, at(second), at(second), 0.0);
}

fn says_elsewhere(records: &OwnerRecords, second: f64) {
    let there = OwnerAnswer::Elsewhere("there".to_owned());
    answer(records, "a", there, second);
}

/// How the only shoot stands, by this section.
fn stands(records: &OwnerRecords, check: &OwnerCheck, second: f64) -> Ownership {
    records.standing("a", check, at(second))
}

fn changes(records: &OwnerRecords, second: f64) -> Vec<(String, &'static str)> {
    let changes = records.next_round(at(second), 0).changes.into_iter();
    changes
        .map(|change| (change.namespace, change.owner.standing.into_str()))
        .collect()
}

/// The one check that begins where there is room for one.
fn due(records: &OwnerRecords, second: f64) -> Option<String> {
    records.next_round(at(second), 1).due.pop()
}

#[test]
fn the_most_overdue_check_is_next_and_none_is_under_way_twice() {
    let records = records(&check(""), &["a"]);
    records.update("b", true, at(1.0));
    assert_eq!(
        records.next_round(at(1.0), 0).next,
        Some(at(300.0)),
        "what waits for room is not looked at again and again"
    );
    assert_eq!(due(&records, 1.0).as_deref(), Some("a"));
    assert_eq!(due(&records, 1.0).as_deref(), Some("b"));
    assert_eq!(due(&records, 1.0), None);
    answer(&records, "a", OwnerAnswer::Ours, 1.5);
    assert_eq!(
        (due(&records, 31.4), records.due("a")),
        (None, Some(at(31.5)))
    );
    assert_eq!(due(&records, 31.5).as_deref(), Some("a"));
    records.update("b", false, at(32.0));
    answer(&records, "b", OwnerAnswer::Ours, 32.0);
    assert_eq!(
        (records.due("b"), records.status("b", at(32.0))),
        (None, None)
    );
}

#[test]
fn a_change_of_standing_is_reported_once_and_also_when_time_alone_brings_it() {
    let records = records(&check("tolerance: 60s"), &["a"]);
    assert_eq!(changes(&records, 1.0), []);
    answer(&records, "a", OwnerAnswer::Ours, 1.0);
    assert_eq!(changes(&records, 1.0), [("a".to_owned(), "ours")]);
    assert_eq!(changes(&records, 1.0), []);
    answer(
        &records,
        "a",
        OwnerAnswer::Unresolved(Unresolved::Server),
        10.0,
    );
    assert_eq!(
        (
            changes(&records, 69.9),
            records.next_round(at(69.0), 0).next
        ),
        (vec![], Some(at(70.0)))
    );
    assert_eq!(changes(&records, 70.0), [("a".to_owned(), "unresolved")]);
    says_elsewhere(&records, 71.0);
    says_elsewhere(&records, 72.0);
    assert_eq!(changes(&records, 72.0), [("a".to_owned(), "elsewhere")]);
}

#[test]
fn a_section_that_asks_for_something_else_begins_again_and_any_other_goes_on() {
    let (one, sooner) = (check(""), check("interval: 20s, onLoss: passivate"));
    let other = OwnerCheck {
        value: Template::parse("there").expect("a value"),
        ..check("")
    };
    let records = records(&one, &["a"]);
    says_elsewhere(&records, 1.0);
    says_elsewhere(&records, 2.0);
    assert_eq!(changes(&records, 2.0), [("a".to_owned(), "elsewhere")]);
    records.apply(Some(&sooner), std::iter::empty(), at(3.0));
    assert!(stands(&records, &sooner, 3.0).is_lost());
    assert_eq!(
        due(&records, 3.0).as_deref(),
        Some("a"),
        "it is checked at once"
    );
    // What another section found counts for nothing.
    assert_eq!(stands(&records, &other, 3.0), Ownership::NotChecked);
    records.apply(Some(&other), ["a".to_owned()].into_iter(), at(3.0));
    assert_eq!(stands(&records, &other, 3.0), Ownership::NotChecked);
    records.apply(None, std::iter::empty(), at(3.0));
    records.update("b", true, at(3.0));
    assert_eq!(
        (due(&records, 3.0), records.next_round(at(3.0), 1).next),
        (None, None)
    );
    assert_eq!(records.standings(at(3.0)), []);
}

#[test]
fn an_answer_is_of_the_shoot_and_the_question_that_it_was_sent_for() {
    let records = records(&check(""), &["a"]);
    records.update("a", false, at(5.0));
    records.update("a", true, at(6.0));
    answer(&records, "a", OwnerAnswer::Ours, 5.5);
    let gone = stands(&records, &check(""), 7.0);
    assert_eq!(gone, Ownership::NotChecked, "that shoot is gone");

    let ask = |name: &str, second| {
        let question = Question {
            name: name.to_owned(),
            ours: "here".to_owned(),
        };
        let (there, now) = (OwnerAnswer::Elsewhere("there".to_owned()), at(second));
        records.answered("a", Some(question), there, now, now, 0.0);
        stands(&records, &check(""), second)
    };
    assert_eq!(ask("owner.a", 8.0), Ownership::Doubted);
    assert_eq!(
        ask("owner.b", 9.0),
        Ownership::Doubted,
        "two questions confirm nothing"
    );
    assert!(ask("owner.b", 10.0).is_lost());
}

#[test]
fn that_a_shoot_is_ours_is_unproven_after_a_suspension_until_it_was_checked_again() {
    let (check, records) = (check(""), records(&check(""), &["a"]));
    let standing = |second| records.standing_since(at(20.0), "a", &check, at(second));
    answer(&records, "a", OwnerAnswer::Ours, 10.0);
    assert_eq!(standing(21.0), Ownership::Unproven(Unresolved::Suspended));
    answer(&records, "a", OwnerAnswer::Ours, 22.0);
    assert_eq!(standing(22.0), Ownership::Ours);
}

#[test]
fn what_others_say_is_repeated_in_part_and_escaped() {
    let question = Question {
        name: "owner.a".to_owned(),
        ours: "here".to_owned(),
    };
    let value = format!("\u{1b}[31m\n{}", "x".repeat(1000));
    let owner = OwnerStatus::new(
        Ownership::Elsewhere { checked: None },
        Some(&question),
        Some(&value),
    );
    let sentence = owner.sentence();
    assert!(
        sentence.len() < 200 && !sentence.contains(char::is_control),
        "{sentence:?}"
    );
    assert_eq!(
        OwnerStatus::new(Ownership::Ours, Some(&question), Some(&value)).elsewhere,
        None
    );
}
