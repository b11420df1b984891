use super::*;

fn facts() -> Facts {
    Facts {
        namespace: "shoot--p--s".to_owned(),
        domain: Some("s.p.example.org".to_owned()),
        seed: Some("here".to_owned()),
        seed_uid: Some("uid".to_owned()),
    }
}

#[test]
fn templates_know_four_placeholders() {
    let filled = |text: &str| Template::parse(text).expect(text).fill(&facts());
    assert_eq!(
        filled("{{namespace}}/{{seed}}-{{seedUID}}").as_deref(),
        Some("shoot--p--s/here-uid")
    );
    assert_eq!(filled("{{domain}}").as_deref(), Some("s.p.example.org"));
    assert_eq!(filled("} as it is {").as_deref(), Some("} as it is {"));
    for wrong in [
        "",
        " ",
        "{{seed",
        "{{ seed }}",
        "{{Seed}}",
        "{{}}",
        "{{seed}}{{x}}",
    ] {
        assert!(Template::parse(wrong).is_err(), "{wrong:?}");
    }
    for name in [
        "owner.{{domain}}",
        "owner.{{domain}}.",
        "_owner.{{seed}}.example.org",
        "{{namespace}}",
    ] {
        assert_eq!(Template::parse_name(name).expect(name).to_string(), name);
    }
    let long = "a".repeat(64);
    for wrong in [
        "owner..{{domain}}",
        ".",
        "a b.{{domain}}",
        "\u{f6}.example.org",
        "*.example.org",
        long.as_str(),
    ] {
        assert!(Template::parse_name(wrong).is_err(), "{wrong:?}");
    }
}
