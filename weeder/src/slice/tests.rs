use super::*;

/// The ready endpoints of a slice of this Service, if any is configured.
fn ready(service: &str, endpoints: &str) -> Option<String> {
    let services = r#"{"kube-apiserver": {"podSelectors": []}}"#;
    let services: Services = serde_json::from_str(services).expect("Services");
    let slice = format!(
        r#"{{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": null,
            "metadata": {{"name": "s", "namespace": "n", "labels": {service}}}, "endpoints": {endpoints}}}"#
    );
    let slice: PrunedSlice = serde_json::from_str(&slice).expect("a slice");
    let ready = slice.pruned(&services)?.ready;
    Some(Vec::from_iter(ready).join(" and "))
}

#[track_caller]
fn check(rows: &str) {
    for (endpoints, expected) in rows.lines().filter_map(|row| row.split_once(" -> ")) {
        let service = format!(r#"{{"{SERVICE_NAME}": "kube-apiserver"}}"#);
        let ready = ready(&service, endpoints).expect("it is configured");
        assert_eq!(ready, expected.replace("none", ""), "{endpoints}");
    }
}

#[test]
fn only_slices_of_configured_services_are_kept() {
    let other = format!(r#"{{"{SERVICE_NAME}": "other"}}"#);
    for labels in ["null", "{}", &other] {
        assert_eq!(ready(labels, r#"[{"addresses": ["a"]}]"#), None);
    }
}

#[test]
fn an_endpoint_is_ready_unless_it_says_that_it_is_not() {
    check(
        r#"
[{"addresses": ["a"], "conditions": {"ready": true, "serving": true, "terminating": false}}] -> a
[{"addresses": ["a"], "conditions": {"ready": false}}] -> none
[{"addresses": ["a"], "conditions": {"ready": null}}] -> a
[{"addresses": ["a"], "conditions": {}}] -> a
[{"addresses": ["a"], "conditions": null}] -> a
[{"addresses": ["a"], "conditions": {"ready": false, "serving": true, "terminating": true}}] -> none
[{"addresses": ["a"], "conditions": {"ready": true, "serving": null}}] -> a

A Service with publishNotReadyAddresses:
[{"addresses": ["a"], "conditions": {"ready": true, "serving": false}}] -> none
"#,
    );
}

#[test]
fn an_endpoint_is_distinguished_by_what_it_leads_to() {
    check(
        r#"
[{"addresses": ["10.0.0.1"], "targetRef": {"uid": "pod"}}, {"addresses": ["fd00::1"], "targetRef": {"uid": "pod"}}] -> pod
[{"addresses": ["10.0.0.1"], "targetRef": {"uid": "new"}}] -> new
[{"addresses": ["10.0.0.1", "10.0.0.2"], "targetRef": null}] -> 10.0.0.1,10.0.0.2
[] -> none
null -> none
"#,
    );
}
