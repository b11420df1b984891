use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::*;

#[test]
fn an_error_names_the_object_and_the_field_and_is_short() {
    let long = "x".repeat(100_000);
    let object =
        json!({"data": long, "metadata": {"name": "c", "namespace": "d", "resourceVersion": "7"}});
    let unreadable = read_object::<ConfigMap>(object.to_string().as_bytes())
        .expect("an object")
        .expect_err("an unreadable one");
    let key = Key {
        namespace: "d".to_owned(),
        name: "c".to_owned(),
    };
    assert_eq!(
        (unreadable.key, unreadable.version.as_deref()),
        (key, Some("7"))
    );
    let error = unreadable.error;
    assert!(error.starts_with("data: ") && error.len() <= 200, "{error}");
}

#[test]
fn what_has_no_name_is_no_object() {
    for nameless in ["8", r#"{"metadata": {"name": 8}}"#, r#"{"metadata""#] {
        assert!(
            read_object::<ConfigMap>(nameless.as_bytes()).is_err(),
            "{nameless}"
        );
    }
}
