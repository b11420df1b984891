use super::*;
use crate::config;
use crate::tests::{CONFIG, at, second};

fn check(more: &str) -> OwnerCheck {
    let check =
        format!("ownerCheck: {{name: 'owner.{{{{domain}}}}', value: '{{{{seed}}}}', {more}}}\n");
    let config = config::parse(&(CONFIG.to_owned() + &check));
    let check = config.expect("a config").config.owner_check;
    check.expect("a check")
}

/// Lets answers come to the checks of one shoot; what stands behind a colon must come of them.
fn tell(story: &str) {
    let (check, owners) = (check(""), Owners::default());
    let mut due = at(0.0);
    owners.add("a", &check, at(0.0));
    for event in story.split("; ") {
        let (event, expected) = event.split_once(": ").unwrap_or((event, ""));
        let words: Vec<_> = event.split(' ').collect();
        let time = |word: &str| at(word.parse().expect(event));
        let now = time(words[0]);
        let mut came = String::new();
        match words[1..] {
            ["next"] => came = second(due).to_string(),
            ["is"] => {
                let owner = owners.status("a", now).expect("it is checked");
                let why = owner.category.map_or("", <&str>::from);
                came = format!("{} {why}", owner.standing.into_str())
                    .trim_end()
                    .to_owned();
            }
            ["may", ref resumed @ ..] => {
                let resumed = resumed.first().map_or(Moment::START, |word| time(word));
                let may = |on_loss| owners.owner("a", on_loss, resumed, now);
                came = format!("{:?}", [OnLoss::StandDown, OnLoss::Passivate].map(may));
            }
            [said, ref asked @ ..] => {
                let said = match said {
                    "ours" => Answer::Ours,
                    "fails" => Answer::Unresolved(Why::Server),
                    "nameless" => Answer::Unresolved(Why::NoName),
                    other => Answer::Elsewhere(other.to_owned()),
                };
                let name = asked.first().map_or("owner.a", |name| name);
                let question = (name.to_owned(), "here".to_owned());
                let answered =
                    |record: &mut Record| record.answered(question, said, &check, [now, now], 0.0);
                due = now + span(owners.read("a", answered).expect("a shoot"));
            }
            _ => panic!("{event}"),
        }
        assert_eq!(came, expected, "{event} of {story}");
    }
}

#[test]
fn answers_make_a_standing() {
    for story in [
        // Before the first check is over nothing is known, for as long as is tolerated.
        "299.9 is: not_checked; 300 is: unresolved",
        // What was never resolved is tolerated from the beginning.
        "0 fails; 200 nameless; 299.9 is: unproven no_name; 300 is: unresolved no_name",
        // Failures are tolerated from the first one on.
        "0 ours; 30 fails; 31 fails; 329.9 is: ours server; 330 is: unresolved server; 331 ours; 331 is: ours",
        "0 there; 1 fails; 300.9 is: doubted server; 301 is: unresolved server",
        "0 ours; 30 fails; 100 ours; 130 fails; 400 is: ours server",
        // The next check was due at 30 s, and would have been over 2 s later: a process that did not
        // run for longer than is tolerated knows nothing any more.
        "0 ours; 331.9 is: ours; 332 is: unresolved; 333 there; 333 is: doubted",
        // Two checks in a row of the same question confirm that it is elsewhere.
        "0 there; 32.9 is: doubted; 33 is: doubted",
        "0 there; 1 there; 70 is: elsewhere; 71 fails; 71 is: elsewhere server; 72 there; 72 is: elsewhere",
        "0 there; 1 third; 70 is: elsewhere; 71 ours; 71 is: ours",
        "0 there; 1 ours; 2 there; 2 is: doubted",
        "0 there; 1 fails; 2 there; 2 is: doubted",
        "8 there owner.a; 9 there owner.b; 9 is: doubted; 10 there owner.b; 10 is: elsewhere",
        // So they do for one that could not be resolved for long, which stays lost meanwhile.
        "0 ours; 30 fails; 331 fails; 332 there; 332 is: unresolved; 333 fails; 334 there; 334 is: unresolved; \
         335 there; 335 is: elsewhere",
        // Another question begins again.
        "1 there; 2 there; 3 fails owner.b; 3 is: unproven server; 303 is: unresolved server",
        // Checks are an interval apart, and sooner while they fail or one says that it is elsewhere.
        "0 ours; 0 next: 30; 1 fails; 1 next: 2; 2 fails; 2 next: 4; 4 fails; 4 next: 8; 8 fails; \
         16 fails; 32 fails; 32 next: 62; 33 ours; 33 next: 63; 63 fails; 63 next: 64; 64 there; \
         64 next: 65; 65 there; 65 next: 95",
    ] {
        tell(story);
    }
    // Shoots get out of step.
    let (mut record, question) = (Record::new(&check(""), at(0.0)), Default::default());
    let wait = record.answered(question, Answer::Ours, &check(""), [at(6.0), at(7.0)], 1.0);
    assert_eq!(wait, Duration::from_secs(27));
}

#[test]
fn task_may_write_by_standing() {
    for story in [
        "0 may: [Unknown, Unknown]; 1 fails; 1 may: [LeaderOnly, LeaderOnly]; 301 may: [Unknown, Unknown]",
        "0 ours; 1 may: [Here, Here]; 2 fails; 2 may: [Here, Here]; 3 there; 3 may: [Unknown, Unknown]",
        // Only the leader takes down what is elsewhere, while no check fails.
        "0 there; 1 there; 1 may: [Unknown, LeaderOnly]; 31 fails; 31 may: [Unknown, Unknown]; \
         32 there; 32 may: [Unknown, LeaderOnly]",
        // What was checked before a suspension is out of date.
        "10 ours; 21 may 20: [LeaderOnly, LeaderOnly]; 22 ours; 22 may 20: [Here, Here]",
        "9 there; 10 there; 21 may 20: [Unknown, Unknown]; 22 there; 22 may 20: [Unknown, LeaderOnly]",
    ] {
        tell(story);
    }
    let owners = Owners::default();
    let unknown = owners.owner("b", OnLoss::StandDown, Moment::START, at(9.0));
    assert_eq!(unknown, Owner::Unknown, "before it is checked");
}

#[test]
fn task_ends_by_standing() {
    for (standing, stands_down, passivates) in [
        (Standing::Ours, Ok(None), Ok(None)),
        (Standing::NotChecked, Ok(None), Ok(None)),
        (Standing::Unproven, Ok(None), Ok(None)),
        (Standing::Doubted, Ok(None), Ok(None)),
        (
            Standing::Elsewhere,
            Err(Standing::Elsewhere),
            Ok(Some(Verdict::ScaleDown)),
        ),
        (
            Standing::Unresolved,
            Err(Standing::Unresolved),
            Err(Standing::Unresolved),
        ),
    ] {
        let decrees =
            [OnLoss::StandDown, OnLoss::Passivate].map(|on_loss| standing.decree(on_loss));
        assert_eq!(decrees, [stands_down, passivates], "{standing:?}");
    }
}

#[test]
fn cluster_makes_the_question() {
    let asked = |domain: Option<&str>, seed: Option<&str>| {
        let facts = Facts {
            namespace: "shoot--p--s".to_owned(),
            domain: domain.map(str::to_owned),
            seed: seed.map(str::to_owned),
            seed_uid: Some("uid".to_owned()),
        };
        question(&check(""), &facts)
    };
    let expected = ("owner.s.p.example.org".to_owned(), "here".to_owned());
    assert_eq!(asked(Some("s.p.example.org"), Some("here")), Some(expected));
    for (domain, seed) in [
        (None, Some("here")),
        (Some("a.b"), None),
        (Some("a b"), Some("here")),
    ] {
        assert_eq!(asked(domain, seed), None);
    }
}

#[test]
fn what_was_found_is_said_before_what_fails() {
    let fails = Some(Why::Server);
    for (standing, elsewhere, category, expected) in [
        (Standing::Ours, None, None, r#"owner.a says "here""#),
        (
            Standing::Ours,
            None,
            fails,
            r#"owner.a said "here", and cannot be resolved now: the DNS server failed"#,
        ),
        (
            Standing::Elsewhere,
            Some("there"),
            None,
            r#"owner.a says "there", not "here""#,
        ),
        (
            Standing::Doubted,
            Some("there"),
            fails,
            r#"owner.a said "there", not "here", and cannot be resolved now: the DNS server failed"#,
        ),
        (
            Standing::Unresolved,
            None,
            fails,
            "owner.a cannot be resolved: the DNS server failed",
        ),
        (
            Standing::Unresolved,
            None,
            None,
            "no check has ended in time",
        ),
    ] {
        let status = OwnerStatus {
            standing,
            name: "owner.a".to_owned(),
            ours: "here".to_owned(),
            elsewhere: elsewhere.map(str::to_owned),
            category,
        };
        assert_eq!(status.sentence(), expected);
    }
}

#[test]
fn foreign_values_are_cut_and_escaped() {
    let mut record = Record::new(&check(""), at(0.0));
    let value = format!("\u{1b}[31m\n{}", "x".repeat(1000));
    let question = ("owner.a".to_owned(), "here".to_owned());
    record.answered(
        question,
        Answer::Elsewhere(value),
        &check(""),
        [at(0.0); 2],
        0.0,
    );
    let sentence = record.status.sentence();
    let is_escaped = sentence.len() < 200 && !sentence.contains(char::is_control);
    assert!(is_escaped, "{sentence:?}");
}
