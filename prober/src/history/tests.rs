use super::*;

const SHOOT: Option<&str> = Some("shoot--a--b");

fn sentences(history: &History) -> Vec<String> {
    history.entries().iter().map(Entry::sentence).collect()
}

#[test]
fn what_began_is_ended_once_and_says_what_it_came_to() {
    let history = History::default();
    history.began(SHOOT, What::Scaling, "scaling down".into());
    history.began(Some("shoot--a--other"), What::Scaling, "scaling down".into());
    history.happened(SHOOT, What::Verdict, "scale up".into());
    assert_eq!(sentences(&history)[2], "scaling down, not over yet");
    history.ended(SHOOT, What::Scaling, Some("3 written".into()));
    history.ended(SHOOT, What::Scaling, Some("another end".into()));
    assert_eq!(sentences(&history), ["scale up", "scaling down, not over yet", "scaling down: 3 written, for 0s"]);
    history.forgo("shoot--a--other");
    assert!(history.entries().iter().all(|entry| !entry.ongoing), "{history:?}");
}

#[test]
fn what_happens_again_and_again_is_one_entry_that_counts() {
    let history = History::default();
    for _ in 0..3 {
        history.began(SHOOT, What::Failure, "timeout at leases".into());
        history.ended(SHOOT, What::Failure, None);
        history.happened(None, What::Leader, "nobody leads".into());
    }
    assert_eq!(
        sentences(&history),
        ["nobody leads, the last of 3 in a row", "timeout at leases, for 0s, the last of 3 in a row"]
    );
    history.began(SHOOT, What::Failure, "tls at leases".into());
    history.began(SHOOT, What::Failure, "timeout at leases".into());
    assert_eq!(history.entries().len(), 4, "another cause is another entry");
}

#[test]
fn one_shoot_fills_its_own_share_and_all_together_no_more_than_the_whole() {
    let history = History::default();
    let happen = |namespace: &str, number: usize| history.happened(Some(namespace), What::Verdict, format!("number {number}"));
    happen("quiet", 0);
    for number in 0..PER_SHOOT + 5 {
        happen("loud", number);
    }
    let entries = history.entries();
    assert_eq!(entries.len(), PER_SHOOT + 1, "what the quiet shoot has stays");
    assert_eq!(entries[0].text, format!("number {}", PER_SHOOT + 4));
    assert_eq!(entries[PER_SHOOT - 1].text, "number 5");
    for number in 0..IN_ALL {
        happen(&format!("shoot-{number}"), 0);
    }
    let entries = history.entries();
    assert_eq!(entries.len(), IN_ALL);
    assert!(entries.iter().all(|entry| entry.namespace.as_deref() != Some("loud")));
}

#[test]
fn what_a_later_version_says_can_be_read() {
    let later = r#"{"at": "2026-01-01T00:00:00Z", "what": "eclipse", "text": "dark", "colour": "black"}"#;
    let entry: Entry = serde_json::from_str(later).expect("an entry");
    assert_eq!((entry.what, entry.sentence().as_str(), entry.times), (What::Other, "dark", 1));
    let again: Entry = serde_json::from_str(&serde_json::to_string(&entry).expect("JSON")).expect("an entry");
    assert_eq!(again, entry);
}
