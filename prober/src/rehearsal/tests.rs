use prober_core::replicas::Marks;

use super::*;
use crate::config;
use crate::tests::CONFIG;

const ID: DependentId = DependentId(0);

fn observed(uid: &str, replicas: i32) -> Observed {
    Observed {
        uid: uid.to_owned(),
        replicas,
        ..Observed::default()
    }
}

fn present(observed: Observed) -> DependentState {
    DependentState::Present(Arc::new(observed))
}

fn at(seconds: i64) -> Moment {
    Moment::since_start(TimeDelta::seconds(seconds))
}

/// One shoot of a seed, first rehearsed 25 s after it is followed if the seed has no other one.
struct Stage {
    rehearsals: Rehearsals,
    config: Arc<Config>,
    shoots: usize,
}

impl Stage {
    fn new(shoots: usize) -> Self {
        Self {
            rehearsals: Rehearsals::default(),
            config: Arc::new(config::parse(CONFIG).unwrap().config),
            shoots,
        }
    }

    fn follow(&mut self, state: DependentState, now: i64) {
        let spread = (self.shoots, 0.5);
        self.rehearsals
            .follow(&self.config, &[state], spread, at(now));
    }

    fn end(&mut self, outcome: Outcome, now: i64) {
        let (_, id, change) = self.rehearsals.next().unwrap();
        let base = Arc::clone(&change.base);
        self.rehearsals.ended(id, base, outcome, at(now));
    }

    /// Second of the next one.
    fn due(&self) -> Option<i64> {
        let (due, ..) = self.rehearsals.next()?;
        Some((due - Moment::START).num_seconds())
    }

    fn refused(&self) -> Option<String> {
        self.rehearsals.refused()?.remove(&ID)
    }
}

#[test]
fn shoots_of_a_seed_are_spread() {
    for (shoots, due) in [(1, 25), (2, 50), (12, 300), (300, 300), (usize::MAX, 300)] {
        let mut stage = Stage::new(shoots);
        stage.follow(present(observed("a", 1)), 0);
        assert_eq!(stage.due(), Some(due), "{shoots}");
    }
}

#[test]
fn what_came_of_one_decides_when_the_next_is_due() {
    let refused = || Outcome::Refused("no".to_owned());
    for (outcome, due, is_refused) in [
        (Outcome::Accepted, 100 + 6 * 3600, false),
        (Outcome::Unsupported, 100 + 6 * 3600, false),
        (refused(), 700, true),
        (Outcome::Unanswered, 700, false),
        (Outcome::Overtaken, 160, false),
    ] {
        let mut stage = Stage::new(1);
        stage.follow(present(observed("a", 1)), 0);
        stage.end(outcome.clone(), 100);
        assert_eq!(stage.due(), Some(due), "{outcome:?}");
        assert_eq!(stage.refused().is_some(), is_refused, "{outcome:?}");
    }
}

#[test]
fn change_is_rehearsed_ten_minutes_after_the_last_one() {
    let marked = Observed {
        marks: Marks {
            replicas: Some("3".to_owned()),
            ..Marks::default()
        },
        ..observed("a", 1)
    };
    let ready = Observed {
        ready: 1,
        resource_version: "8".to_owned(),
        ..observed("a", 1)
    };
    for (state, due) in [
        (observed("a", 1), 100 + 6 * 3600),
        (ready, 100 + 6 * 3600),
        (observed("b", 1), 700),
        (observed("a", 2), 700),
        (marked, 700),
    ] {
        let mut stage = Stage::new(1);
        stage.follow(present(observed("a", 1)), 0);
        stage.end(Outcome::Accepted, 100);
        stage.follow(present(state.clone()), 200);
        assert_eq!(stage.due(), Some(due), "{state:?}");
    }
}

#[test]
fn config_and_leadership_begin_again() {
    let change: [fn(&mut Stage); 2] = [
        |stage| stage.config = Arc::new(Config::clone(&stage.config)),
        |stage| stage.rehearsals.suspend(),
    ];
    for change in change {
        for (now, due) in [(200, 700), (3600, 3625)] {
            let mut stage = Stage::new(1);
            stage.follow(present(observed("a", 1)), 0);
            stage.end(Outcome::Accepted, 100);
            change(&mut stage);
            stage.follow(present(observed("a", 1)), now);
            assert_eq!(stage.due(), Some(due));
        }
    }
}

#[test]
fn standby_rehearses_and_shows_nothing() {
    let mut stage = Stage::new(1);
    stage.follow(present(observed("a", 1)), 0);
    stage.end(Outcome::Refused("no".to_owned()), 100);
    stage.rehearsals.suspend();
    assert_eq!((stage.due(), stage.rehearsals.refused()), (None, None));
}

#[test]
fn what_is_not_scaled_is_not_rehearsed() {
    let ignored = Observed {
        marks: Marks {
            ignored: true,
            ..Marks::default()
        },
        ..observed("a", 1)
    };
    let no_kind = DependentState::Unscalable(Unscalable::NoSuchKind);
    for (state, refused) in [
        (present(ignored), None),
        (present(observed("a", 0)), None),
        (DependentState::Unknown, None),
        (DependentState::Absent, Some("not found")),
        (no_kind, Some("no such kind, or its plural is unusual")),
    ] {
        let mut stage = Stage::new(1);
        stage.follow(state.clone(), 0);
        let expected = refused.map(str::to_owned);
        assert_eq!(
            (stage.due(), stage.refused()),
            (None, expected),
            "{state:?}"
        );
    }
}

#[test]
fn optional_dependent_may_be_missing() {
    let text = CONFIG.replace("  scaleUp", "  optional: true\n  scaleUp");
    let mut stage = Stage::new(1);
    stage.config = Arc::new(config::parse(&text).unwrap().config);
    for (state, refused) in [
        (DependentState::Absent, None),
        (DependentState::Unscalable(Unscalable::NoSuchKind), None),
        (
            DependentState::Unscalable(Unscalable::NoReplicas),
            Some("it has no spec.replicas"),
        ),
    ] {
        stage.follow(state, 0);
        assert_eq!(stage.refused(), refused.map(str::to_owned));
    }
}

#[test]
fn refusal_stands_until_one_is_accepted() {
    let mut stage = Stage::new(1);
    stage.follow(present(observed("a", 1)), 0);
    stage.end(Outcome::Refused("no".to_owned()), 100);
    for (outcome, stands) in [
        (Outcome::Overtaken, true),
        (Outcome::Unanswered, true),
        (Outcome::Accepted, false),
    ] {
        stage.end(outcome.clone(), 700);
        assert_eq!(stage.refused().is_some(), stands, "{outcome:?}");
    }
    stage.end(Outcome::Refused("no".to_owned()), 1300);
    stage.follow(DependentState::Unknown, 1400);
    assert!(stage.refused().is_some());
    stage.follow(present(observed("a", 0)), 1500);
    assert_eq!(stage.refused(), None);
}

#[test]
fn answers_are_told_apart() {
    let mut stage = Stage::new(1);
    stage.follow(present(observed("a", 2)), 0);
    let (_, id, change) = stage.rehearsals.next().unwrap();
    assert_eq!(id, ID);
    let status = |code, said: &str| {
        let said = said.to_owned();
        Err(Refusal::Status { code, said })
    };
    let denied = |code| {
        let said = "no".to_owned();
        Err(Refusal::Denied { code, said })
    };
    let unavailable = |code| {
        let said = "no".to_owned();
        Err(Refusal::Unavailable { code, said })
    };
    let refused = |words: &str| Outcome::Refused(words.to_owned());
    let done = change.after(String::new());
    let raised = Observed {
        replicas: 2,
        ..done.clone()
    };
    let unmarked = Observed {
        marks: Marks::default(),
        ..done.clone()
    };
    for (answer, outcome) in [
        (Ok(present(done)), Outcome::Accepted),
        (
            Ok(present(raised)),
            refused("the answer sets spec.replicas to 2 again"),
        ),
        (
            Ok(present(unmarked)),
            refused("the answer drops the watchdog's annotations"),
        ),
        (denied(403), refused("no")),
        (denied(401), Outcome::Unanswered),
        (status(422, "no"), refused("no")),
        (
            status(400, r#"admission webhook "w" does not support dry run"#),
            Outcome::Unsupported,
        ),
        (unavailable(500), refused("no")),
        (unavailable(503), Outcome::Unanswered),
        (Err(Refusal::Throttled(None)), Outcome::Unanswered),
        (
            Err(Refusal::Conflict(DependentState::Unknown)),
            Outcome::Overtaken,
        ),
        (Err(Refusal::NotFound), Outcome::Unanswered),
        (Err(Refusal::Timeout), Outcome::Unanswered),
        (
            status(422, &"ä".repeat(150)),
            refused(&format!("{}...", "ä".repeat(100))),
        ),
    ] {
        assert_eq!(Outcome::of(change, answer.clone()), outcome, "{answer:?}");
    }
}
