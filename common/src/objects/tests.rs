use common_core::change::Key;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::WatchEvent;
use kube::core::ObjectList;
use serde_json::from_str;

use super::*;

type Listed = ObjectList<Readable<ConfigMap>>;
type Event = WatchEvent<Readable<ConfigMap>>;

/// Its data are no map; `metadata` is put between the braces of its own.
fn odd(data: &str, metadata: &str) -> String {
    format!(r#"{{"data": {data}, "metadata": {{{metadata}}}}}"#)
}

#[test]
fn an_odd_object_is_a_value_of_its_own() {
    let names = r#""name": "c", "namespace": "d", "resourceVersion": "7""#;
    let deep = format!("{}{}", r#"{"a":["#.repeat(100_000), "]}".repeat(100_000));
    // What nobody reads is skipped, however deep it is.
    let readable = format!(r#"{{"metadata": {{{names}}}, "status": {deep}}}"#);
    let Readable(object) = from_str::<Readable<ConfigMap>>(&readable).expect("a name");
    object.expect("a readable one");
    // k8s-openapi reads these, as deep as they are.
    let managed = format!(r#"{names}, "managedFields": [{{"fieldsV1": {deep}}}]"#);
    let labelled = format!(r#"{names}, "labels": {{"a": 1}}"#);
    for object in [
        odd("8", names),
        odd(&deep, names),
        odd("{}", &managed),
        odd("{}", &labelled),
    ] {
        let list = format!(r#"{{"items": [{{"metadata": {{"name": "a"}}}}, {object}]}}"#);
        let list: Listed = from_str(&list).expect("a list");
        let readable = list.items.iter().map(|Readable(object)| object.is_ok());
        assert!(readable.eq([true, false]), "{list:?}");
        let event = format!(r#"{{"type": "MODIFIED", "object": {object}}}"#);
        let Ok(WatchEvent::Modified(odd)) = from_str::<Event>(&event) else {
            panic!("no event: {event}");
        };
        let Key { namespace, name } = odd.key();
        let version = odd.version().unwrap_or_default();
        assert_eq!([namespace, name, version], ["d", "c", "7"]);
    }
}

#[test]
fn an_error_names_the_field_and_is_short() {
    let text = format!("{:?}", "x".repeat(100_000));
    let Readable(object) =
        from_str::<Readable<ConfigMap>>(&odd(&text, r#""name": "c""#)).expect("a name");
    let error = object.expect_err("an unreadable one").error;
    assert!(error.starts_with("data: ") && error.len() <= 200, "{error}");
}

#[test]
fn what_has_no_name_is_no_object() {
    for nameless in ["8", r#"{"metadata": {"name": 8}}"#, r#"{"metadata""#] {
        assert!(
            from_str::<Readable<ConfigMap>>(nameless).is_err(),
            "{nameless}"
        );
        let list = format!(r#"{{"items": [{nameless}]}}"#);
        assert!(from_str::<Listed>(&list).is_err(), "{nameless}");
    }
}
