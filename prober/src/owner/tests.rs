use super::*;
use crate::config;
use crate::tests::{CONFIG, at, second};

fn check() -> OwnerCheck {
    let check = "ownerCheck: {name: 'owner.{{domain}}', value: '{{seed}}'}\n";
    let config = config::parse(&(CONFIG.to_owned() + check));
    let check = config.expect("a config").config.owner_check;
    check.expect("a check")
}

/// Lets answers come to the checks of one shoot; what stands behind a colon must come of them.
fn tell(story: &str) {
    let (check, mut owner) = (check(), OwnerStatus::default());
    let mut next = at(0.0);
    for event in story.split("; ") {
        let (event, expected) = event.split_once(": ").unwrap_or((event, ""));
        let words: Vec<_> = event.split(' ').collect();
        let time = |word: &str| at(word.parse().expect(event));
        let now = time(words[0]);
        let mut came = String::new();
        match words[1..] {
            ["next"] => came = second(next).to_string(),
            ["says"] => came = owner.sentence(),
            ["is"] => {
                let failing = owner.category.is_some();
                came = owner.standing.into_str().to_owned() + if failing { ", fails" } else { "" };
            }
            ["may", ref resumed @ ..] => {
                let resumed = resumed.first().map_or(Moment::START, |word| time(word));
                let may = |on_loss| owner.owner(on_loss, resumed);
                came = format!("{:?}", [OnLoss::StandDown, OnLoss::Passivate].map(may));
            }
            [said, ref asked @ ..] => {
                let said = match said {
                    "ours" => Ok("here".to_owned()),
                    "fails" => Err(Why::Server),
                    other => Ok(other.to_owned()),
                };
                let name = asked.first().map_or("owner.a", |name| name);
                let question = (name.to_owned(), "here".to_owned());
                next = now + span(owner.answered(question, said, &check, [now, now]));
            }
            _ => panic!("{event}"),
        }
        assert_eq!(came, expected, "{event} of {story}");
    }
}

#[test]
fn answers_make_a_standing() {
    for story in [
        // What was never resolved is tolerated from the first check on.
        "0 is: not_checked; 1 fails; 300 fails; 300 is: unproven, fails; 301 fails; 301 is: unresolved, fails",
        // Failures are tolerated from the first one on.
        "0 ours; 30 fails; 329 fails; 329 is: ours, fails; 330 fails; 330 is: unresolved, fails; 331 ours; 331 is: ours",
        "0 there; 1 fails; 300 fails; 300 is: doubted, fails; 301 fails; 301 is: unresolved, fails",
        "0 ours; 30 fails; 100 ours; 130 fails; 400 fails; 400 is: ours, fails",
        // Two checks in a row of the same question confirm that it is elsewhere.
        "0 there; 0 is: doubted; 1 there; 1 is: elsewhere; 71 fails; 71 is: elsewhere, fails; 72 there; 72 is: elsewhere",
        "0 there; 1 third; 1 is: elsewhere; 71 ours; 71 is: ours",
        "0 there; 1 ours; 2 there; 2 is: doubted",
        "0 there; 1 fails; 2 there; 2 is: doubted",
        "8 there owner.a; 9 there owner.b; 9 is: doubted; 10 there owner.b; 10 is: elsewhere",
        "0 ours; 30 fails; 331 fails; 332 there; 332 is: unresolved; 332 next: 333; 333 there; 333 is: elsewhere",
        // Another question begins again.
        "1 there; 2 there; 3 fails owner.b; 3 is: unproven, fails",
        // Checks are an interval apart, and sooner while they fail or one says that it is elsewhere.
        "0 ours; 0 next: 30; 30 fails; 30 next: 31; 31 fails; 31 next: 32; 32 fails; 32 next: 34; 34 fails; \
         34 next: 38; 90 fails; 90 next: 120; 120 ours; 120 next: 150; 150 fails; 150 next: 151; 151 there; \
         151 next: 152; 152 there; 152 next: 182",
    ] {
        tell(story);
    }
}

#[test]
fn task_may_write_by_standing() {
    for story in [
        "0 may: [Unknown, Unknown]; 1 fails; 1 may: [LeaderOnly, LeaderOnly]; 301 fails; 301 may: [Unknown, Unknown]",
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
}

#[test]
fn task_ends_by_standing() {
    let decrees = |standing: Standing| {
        [OnLoss::StandDown, OnLoss::Passivate].map(|on_loss| standing.decree(on_loss))
    };
    use Standing::{Doubted, Elsewhere, NotChecked, Ours, Unproven, Unresolved};
    for standing in [Ours, NotChecked, Unproven, Doubted] {
        assert_eq!(decrees(standing), [Ok(None); 2], "{standing:?}");
    }
    let down = Ok(Some(Verdict::ScaleDown));
    assert_eq!(decrees(Elsewhere), [Err(Elsewhere), down]);
    assert_eq!(decrees(Unresolved), [Err(Unresolved); 2]);
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
        question(&check(), &facts)
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
fn a_record_is_a_sentence() {
    tell(
        r#"0 says: no check has ended yet; 1 ours; 1 says: owner.a says "here"; 2 there; 2 says: owner.a says "there", not "here""#,
    );
    tell(
        "0 ours; 1 fails; 1 says: owner.a cannot be resolved: no DNS server can be reached, or it failed",
    );
    // Foreign values are cut and escaped.
    let (mut owner, value) = (
        OwnerStatus::default(),
        format!("\u{1b}[31m\n{}", "x".repeat(1000)),
    );
    owner.answered(Default::default(), Ok(value), &check(), [at(0.0); 2]);
    let sentence = owner.sentence();
    let is_escaped = sentence.len() < 200 && !sentence.contains(char::is_control);
    assert!(is_escaped, "{sentence:?}");
}
