use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

#[test]
fn an_error_names_the_object_and_the_field_and_is_short() {
    let object = format!(
        r#"{{"data": "{}", "metadata": {{"name": "c", "namespace": "d", "resourceVersion": "7"}}}}"#,
        "x".repeat(100_000)
    );
    let read = read_object::<ConfigMap>(object.as_bytes()).expect("an object");
    let UnreadableObject {
        key,
        version,
        error,
    } = read.expect_err("an unreadable one");
    assert_eq!(
        [&*key.namespace, &key.name, &version.unwrap_or_default()],
        ["d", "c", "7"]
    );
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
