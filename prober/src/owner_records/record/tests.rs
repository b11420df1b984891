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

fn question(domain: Option<&str>, seed: Option<&str>) -> Option<Question> {
    let facts = Facts {
        namespace: "shoot--p--s".to_owned(),
        domain: domain.map(str::to_owned),
        seed: seed.map(str::to_owned),
        seed_uid: Some("uid".to_owned()),
    };
    Question::of(&check(), &facts)
}

#[test]
fn a_record_that_says_our_value_is_ours_and_any_other_value_is_not() {
    let here = question(Some("s.p.example.org"), Some("here")).expect("a question");
    assert_eq!(here.name, "owner.s.p.example.org");
    for (records, judged) in [
        ("here", "ours"),
        ("here, here", "ours"),
        ("there, there", "elsewhere"),
        ("Here", "elsewhere"),
        ("here ", "elsewhere"),
        ("\"here\"", "elsewhere"),
        ("", "elsewhere"),
        ("here, there", "ambiguous"),
        ("there, elsewhere", "ambiguous"),
    ] {
        let records: Vec<_> = records.split(", ").map(str::to_owned).collect();
        assert_eq!(here.judge(&records).as_str(), judged, "{records:?}");
    }
    assert_eq!(here.judge(&[]).as_str(), "no_record");
    // A Cluster that does not say it all makes no question.
    for (domain, seed) in [
        (None, Some("here")),
        (Some("a.b"), None),
        (Some("a b"), Some("here")),
    ] {
        assert_eq!(question(domain, seed), None);
    }
}
