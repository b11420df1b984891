use prober_core::template::Template;

use super::*;
use crate::config;
use crate::tests::{CONFIG, at, second};

pub(super) fn check(more: &str) -> OwnerCheck {
    let check = format!("ownerCheck: {{name: 'owner.{{{{namespace}}}}', value: here, {more}}}\n");
    let config = config::parse(&(CONFIG.to_owned() + &check));
    let check = config.expect("a config").config.owner_check;
    check.expect("a check")
}

fn section(name: &str) -> Option<OwnerCheck> {
    match name {
        "none" => None,
        "usual" => Some(check("")),
        "impatient" => Some(check("tolerance: 60s")),
        "sooner" => Some(check("interval: 20s, onLoss: passivate")),
        "other" => Some(OwnerCheck {
            value: Template::parse("there").expect("a value"),
            ..check("")
        }),
        _ => panic!("{name}"),
    }
}

fn question(name: &str) -> Question {
    Question {
        name: name.to_owned(),
        ours: "here".to_owned(),
    }
}

/// A standing with its reason, and when the last check said what it rests on.
fn shown(standing: Ownership) -> String {
    let word = standing.into_str();
    match standing {
        Ownership::Unproven(why) | Ownership::Unresolved(why) => {
            format!("{word} ({})", why.into_str())
        }
        Ownership::Elsewhere {
            checked: Some(last),
        } => format!("{word} at {}", second(last)),
        // Nothing is begun on what was confirmed while checks fail.
        Ownership::Elsewhere { checked: None } => format!("{word}, failing"),
        _ => word.to_owned(),
    }
}

/// Lets things happen to the records of all shoots, of which `a` is there from the beginning; what
/// stands behind a colon must come of it.
fn tell(section_at_first: &str, story: &str) {
    let (records, mut applied) = (OwnerRecords::default(), section(section_at_first));
    records.apply(applied.as_ref(), ["a".to_owned()].into_iter(), at(0.0));
    for event in story.split("; ") {
        let (event, expected) = event.split_once(": ").unwrap_or((event, ""));
        let words: Vec<_> = event.split(' ').collect();
        let time = |word: &str| at(word.parse().expect(event));
        let now = time(words[0]);
        let stands = |check: Option<&OwnerCheck>, resumed| {
            shown(records.standing_since(resumed, "a", check.expect("a section"), now))
        };
        let mut came = String::new();
        match words[1..] {
            ["section", name] => {
                applied = section(name);
                records.apply(applied.as_ref(), ["a".to_owned()].into_iter(), now);
            }
            ["add", shoot] => records.update(shoot, true, now),
            ["remove", shoot] => records.update(shoot, false, now),
            // The one check that begins where there is room for one.
            ["begins"] => came = records.next_round(now, 1).due.concat(),
            ["next"] => came = second(records.next_round(now, 0).next.expect(event)).to_string(),
            ["changes"] => {
                let changes = records.next_round(now, 0).changes.into_iter();
                let changes =
                    changes.map(|change| change.namespace + " " + change.owner.standing.into_str());
                came = changes.collect();
            }
            ["is"] => came = stands(applied.as_ref(), Moment::START),
            ["is", "by", other] => came = stands(section(other).as_ref(), Moment::START),
            ["is", "after", "suspension", "until", resumed] => {
                came = stands(applied.as_ref(), time(resumed))
            }
            [shoot, said, ref asked @ ..] => {
                let said = match said {
                    "ours" => OwnerAnswer::Ours,
                    "fails" => OwnerAnswer::Unresolved(Unresolved::Server),
                    "nameless" => OwnerAnswer::Unresolved(Unresolved::NoName),
                    other => OwnerAnswer::Elsewhere(other.to_owned()),
                };
                let asked = asked.first().map(|name| question(name));
                records.answered(shoot, asked, said, now, now, 0.0);
            }
            _ => panic!("{event}"),
        }
        assert_eq!(came, expected, "{event} of {story}");
    }
}

#[test]
fn a_standing_is_what_the_answers_so_far_tell() {
    for story in [
        // Before the first check is over nothing is known, for as long as it may take.
        "9 is: not_checked; 10 begins: a; 10 next: 12; 11.9 is: not_checked; 12 is: unproven (timeout); \
         12 next: 300; 300 is: unresolved (timeout)",
        // What was never resolved is tolerated from the beginning.
        "0.5 a fails; 200 a nameless; 299.9 is: unproven (no_name); 300 is: unresolved (no_name)",
        // Failures are tolerated from the first one on.
        "0 a ours; 30 a fails; 31 a fails; 329.9 is: ours; 330 is: unresolved (server)",
        "0 a there; 30 a fails; 31 next: 330; 329.9 is: doubted; 330 is: unresolved (server)",
        "0 a ours; 30 a fails; 100 a ours; 130 a fails; 400 is: ours",
        // The next check was due at 30 s, and would have been over 2 s later: a process that did not
        // run for longer than is tolerated knows nothing any more.
        "0 a ours; 331.9 is: ours; 332 is: unresolved (timeout)",
        // Two checks in a row of the same question confirm that it is elsewhere.
        "0 a there; 70 is: doubted",
        "0 a there; 1 a there; 70 is: elsewhere at 1; 71 a fails; 71 is: elsewhere, failing; 72 a there; 72 is: elsewhere at 72",
        "0 a there; 1 a third; 70 is: elsewhere at 1; 71 a ours; 71 is: ours",
        "0 a there; 1 a ours; 2 a there; 70 is: doubted",
        "0 a there; 1 a fails; 2 a there; 70 is: doubted",
        "8 a there owner.a; 9 a there owner.b; 9 is: doubted; 10 a there owner.b; 10 is: elsewhere at 10",
        // Checks are an interval apart, and sooner while they fail or one says that it is elsewhere.
        "0 a ours; 0 next: 30; 1 a fails; 1 next: 2; 2 a fails; 2 next: 4; 4 a fails; 4 next: 8; 8 a fails; \
         16 a fails; 32 a fails; 32 next: 62; 33 a ours; 33 next: 63; 63 a fails; 63 next: 64; 64 a there; \
         64 next: 65; 65 a there; 65 next: 95",
        // That it is ours is unproven after a suspension until it was checked again.
        "10 a ours; 21 is after suspension until 20: unproven (suspended); 22 a ours; 22 is after suspension until 20: ours",
        // A section that asks for something else begins again, and any other goes on at once.
        "1 a there; 2 a there; 2 changes: a elsewhere; 3 section sooner; 3 is: elsewhere at 2; 3 begins: a; \
         3 is by other: not_checked; 3 section other; 3 is: not_checked; 3 section none; 3 begins",
        // The most overdue check is next, none is under way twice, and one that waits for room is not
        // looked at again and again.
        "1 add b; 1 next: 300; 1 begins: a; 1 begins: b; 1 begins; 1.5 a ours; 31.4 begins; 31.4 next: 31.5; \
         31.5 begins: a; 32 remove b; 32 b ours; 33 a ours; 99 begins: a; 99 begins",
    ] {
        tell("usual", story);
    }
    // A change of standing is reported once, and also when time alone brings it.
    let story = "1 changes; 1 a ours; 1 changes: a ours; 1 changes; 10 a fails; 69.9 changes; 69 next: 70; \
                 70 changes: a unresolved; 71 a there; 72 a there; 72 changes: a elsewhere";
    tell("impatient", story);
    // An answer is of the shoot that it was sent for; shoots get out of step.
    let (records, usual) = (OwnerRecords::default(), check(""));
    records.apply(Some(&usual), ["a".to_owned()].into_iter(), at(6.0));
    for (sent, standing) in [(5.5, "not_checked"), (6.0, "ours")] {
        records.answered("a", None, OwnerAnswer::Ours, at(sent), at(7.0), 1.0);
        assert_eq!(shown(records.standing("a", &usual, at(7.0))), standing);
    }
    assert_eq!(records.next_round(at(7.0), 0).next, Some(at(34.0)));
}

#[test]
fn what_others_say_is_repeated_in_part_and_escaped() {
    let value = format!("\u{1b}[31m\n{}", "x".repeat(1000));
    let told = |standing| OwnerStatus::new(standing, Some(&question("owner.a")), Some(&value));
    let sentence = told(Ownership::Elsewhere { checked: None }).sentence();
    let is_escaped = sentence.len() < 200 && !sentence.contains(char::is_control);
    assert!(is_escaped, "{sentence:?}");
    assert_eq!(told(Ownership::Ours).elsewhere, None);
}
