//! The table. Each function is a story of its own, on objects of its own.

use serde_json::{Value, json};

use super::REJECTED;
use super::row::{Before, Row};

const NAMESPACES: &str = "/api/v1/namespaces";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/conformance/deployments";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/conformance/leases";
const PODS: &str = "/api/v1/namespaces/conformance/pods";
const SECRETS: &str = "/api/v1/namespaces/conformance/secrets";
const CONFIG_MAPS: &str = "/api/v1/namespaces/conformance/configmaps";
const WIDGETS: &str = "/apis/example.org/v1/namespaces/conformance/widgets";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

pub(super) fn all() -> Vec<Row> {
    let stories = [
        existence(),
        patches(),
        refused_patches(),
        updates(),
        leases(),
        scale(),
        custom_scale(),
        preconditions(),
        lists(),
        watches(),
        access(),
        rejection(),
        compaction(),
    ];
    stories.into_iter().flatten().collect()
}

fn deployment(name: &str, replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

fn lease(name: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": {"holderIdentity": "me"}})
}

fn named(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
}

fn existence() -> Vec<Row> {
    let none = format!("{DEPLOYMENTS}/none");
    let details = json!({"details": {"name": "none", "group": "apps", "kind": "deployments"}});
    let missing = [
        Row::get(&none),
        Row::patch(&none, json!({"spec": {"replicas": 1}})),
        Row::put(&none, deployment("none", 1)),
        Row::delete(&none, json!({})),
    ];
    let missing = missing.map(|row| {
        let row = row.fails(404, "NotFound", "deployments.apps \"none\" not found");
        row.is(details.clone())
    });
    let mut rows = vec![
        Row::post(NAMESPACES, named("Namespace", "conformance")),
        Row::post(DEPLOYMENTS, deployment("there", 2))
            .is(json!({"kind": "Deployment", "apiVersion": "apps/v1", "spec": {"replicas": 2},
            "metadata": {"name": "there", "namespace": "conformance", "uid": "$there", "generation": 1}})),
        Row::post(DEPLOYMENTS, deployment("there", 2)).fails(
            409,
            "AlreadyExists",
            "deployments.apps \"there\" already exists",
        ),
        // Of a group that is served, and of another one.
        Row::get("/apis/apps/v1/namespaces/conformance/nothings").fails(404, "NotFound", "the server could not find the requested resource"),
        Row::get("/apis/nothing.example.org/v1/nothings").code(404).is(json!("404 page not found")),
        Row::get("/apis/nothing.example.org/v1").code(404).is(json!("404 page not found")),
        Row::get(&format!("{SECRETS}/none/scale")).fails(404, "NotFound", "the server could not find the requested resource"),
    ];
    rows.extend(missing);
    rows
}

/// JSON merge patches, as both agents send them: all or nothing.
fn patches() -> Vec<Row> {
    let path = format!("{DEPLOYMENTS}/patched");
    let patch = json!({"metadata": {"uid": "$patched", "resourceVersion": "$created", "annotations": {"a": "1", "b": "2"}},
        "spec": {"replicas": 0}});
    vec![
        Row::post(DEPLOYMENTS, deployment("patched", 2))
            .is(json!({"metadata": {"uid": "$patched", "resourceVersion": "$created"}})),
        Row::patch(&path, patch.clone()).is(json!({"spec": {"replicas": 0, "template": {"spec": {"containers": [{"name": "c"}]}}},
            "metadata": {"uid": "$patched", "generation": 2, "annotations": {"a": "1", "b": "2"}, "resourceVersion": "$down"}})),
        // Nothing is changed, and so no version is made.
        Row::patch(&path, json!({"spec": {"replicas": 0}})).is(json!({"metadata": {"resourceVersion": "$down"}})),
        Row::patch(&path, patch).fails(
            409,
            "Conflict",
            &format!("Operation cannot be fulfilled on deployments.apps \"patched\": {MODIFIED}"),
        ).is(json!({"details": {"name": "patched", "group": "apps", "kind": "deployments"}})),
        // A null removes. The generation of a Deployment counts changes of its annotations, too.
        Row::patch(&path, json!({"metadata": {"annotations": {"a": null, "none": null}}}))
            .is(json!({"metadata": {"annotations": {"a": null, "b": "2"}, "generation": 3}})),
        Row::patch(&path, json!({"metadata": {"labels": {"l": "1"}}})).is(json!({"metadata": {"labels": {"l": "1"}, "generation": 3}})),
        Row::patch(&path, json!({"metadata": {"annotations": {"b": null}}})).is(json!({"metadata": {"annotations": null}})),
        Row::patch(&path, json!({"metadata": {"annotations": {"c": "3"}}})).is(json!({"metadata": {"annotations": {"c": "3"}}})),
        Row::patch(&path, json!({"metadata": {"annotations": null}})).is(json!({"metadata": {"annotations": null}})),
        // A list is replaced, and what has a default gets it.
        Row::patch(&path, json!({"spec": {"replicas": null, "template": {"spec": {"containers": [{"name": "d", "image": "i"}]}}}}))
            .is(json!({"spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "d", "image": "i"}]}}}})),
        // The status has a path of its own.
        Row::patch(&path, json!({"status": {"readyReplicas": 9}})).is(json!({"status": {"readyReplicas": null}})),
        // What only the server sets is left as it is.
        Row::patch(&path, json!({"metadata": {"generation": 99, "creationTimestamp": null}}))
            .is(json!({"metadata": {"uid": "$patched", "generation": 7, "creationTimestamp": "$since"}})),
    ]
}

fn refused_patches() -> Vec<Row> {
    let path = format!("{DEPLOYMENTS}/patched");
    vec![
        Row::patch(&path, json!({"metadata": {"uid": "other"}})).fails(
            422,
            "Invalid",
            "Deployment.apps \"patched\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable",
        ),
        Row::patch(&path, json!({"spec": {"replicas": -1}})).fails(
            422,
            "Invalid",
            "Deployment.apps \"patched\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        )
            .is(json!({"details": {"name": "patched", "group": "apps", "kind": "Deployment"}})),
        Row::patch(&path, json!({"spec": {"replicas": "two"}})).fails(422, "Invalid", " \"\" is invalid: patch: "),
        Row::patch(&path, json!({"metadata": {"annotations": {"a": 1}}})).fails(422, "Invalid", " \"\" is invalid: patch: "),
        Row::patch(&path, json!({"metadata": {"name": "other"}})).fails(
            400,
            "BadRequest",
            "the name of the object (other) does not match the name on the URL (patched)",
        ),
        Row::patch(&path, json!([1])).fails(400, "BadRequest", ""),
        Row::patch(&path, json!({})).sent_as("application/json").fails(415, "UnsupportedMediaType", ""),
        Row::get(&path).is(json!({"metadata": {"uid": "$patched", "annotations": null}, "spec": {"replicas": 1}})),
    ]
}

fn updates() -> Vec<Row> {
    let path = format!("{DEPLOYMENTS}/updated");
    let with = |replicas, metadata: Value| {
        let mut object = deployment("updated", replicas);
        for (key, value) in metadata.as_object().into_iter().flatten() {
            object["metadata"][key] = value.clone();
        }
        object
    };
    vec![
        Row::post(DEPLOYMENTS, deployment("updated", 1))
            .is(json!({"metadata": {"uid": "$updated", "resourceVersion": "$first"}})),
        Row::put(
            &path,
            with(2, json!({"uid": "$updated", "resourceVersion": "$first"})),
        )
        .is(json!({"spec": {"replicas": 2}, "metadata": {"generation": 2}})),
        Row::put(&path, with(3, json!({"resourceVersion": "$first"})))
            .fails(409, "Conflict", MODIFIED),
        Row::put(&path, with(3, json!({})))
            .is(json!({"spec": {"replicas": 3}, "metadata": {"uid": "$updated"}})),
        Row::put(&path, with(4, json!({"uid": "other"}))).fails(
            409,
            "Conflict",
            "Precondition failed: UID in precondition: other, UID in object meta: $updated",
        ),
        Row::post(
            DEPLOYMENTS,
            with(1, json!({"name": "new", "resourceVersion": "$first"})),
        )
        .code(500)
        .is(json!({"message": "resourceVersion should not be set on objects to be created"})),
        Row::put(&path, deployment("other", 4)).fails(
            400,
            "BadRequest",
            "the name of the object (other) does not match the name on the URL (updated)",
        ),
    ]
}

/// The lock of an election: nobody overwrites what they haven't read.
fn leases() -> Vec<Row> {
    let lock = format!("{LEASES}/lock");
    let held = |version: &str, holder: &str| {
        let mut lease = lease("lock");
        (
            lease["metadata"]["resourceVersion"],
            lease["spec"]["holderIdentity"],
        ) = (json!(version), json!(holder));
        lease
    };
    let mut of_uid = held("$lock", "me");
    of_uid["metadata"]["uid"] = json!("$uid");
    vec![
        Row::post(LEASES, lease("lock")).is(json!({"metadata": {"uid": "$uid", "resourceVersion": "$lock", "generation": null}})),
        Row::post(LEASES, lease("lock")).fails(409, "AlreadyExists", "leases.coordination.k8s.io \"lock\" already exists"),
        Row::put(&lock, held("$lock", "another")).is(json!({"spec": {"holderIdentity": "another"}})),
        Row::put(&lock, held("$lock", "me")).fails(409, "Conflict", MODIFIED),
        Row::put(&lock, lease("lock")).fails(
            422,
            "Invalid",
            "leases.coordination.k8s.io \"lock\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
        ),
        Row::get(&lock).is(json!({"spec": {"holderIdentity": "another"}})),
        Row::delete(&lock, json!({})).is(json!({"kind": "Status", "status": "Success", "details": {"name": "lock", "kind": "leases"}})),
        // An update brings it back, whatever version it names, but not another one in its place.
        Row::put(&lock, of_uid).fails(409, "Conflict", "Precondition failed: UID in precondition: $uid, UID in object meta: "),
        Row::put(&lock, held("$lock", "me")).code(201).is(json!({"spec": {"holderIdentity": "me"}})),
        Row::delete(&lock, json!({})),
    ]
}

fn scale() -> Vec<Row> {
    let (object, path) = (
        format!("{DEPLOYMENTS}/scaled"),
        format!("{DEPLOYMENTS}/scaled/scale"),
    );
    let scale = |replicas, version| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas},
            "metadata": {"name": "scaled", "namespace": "conformance", "resourceVersion": version}})
    };
    vec![
        Row::post(DEPLOYMENTS, deployment("scaled", 3)).is(json!({"metadata": {"uid": "$scaled"}})),
        Row::get(&path).is(json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": {"replicas": 3}, "status": {"replicas": 0},
            "metadata": {"name": "scaled", "namespace": "conformance", "uid": "$scaled", "resourceVersion": "$scale"}})),
        Row::put(&path, scale(0, "$scale")).is(json!({"kind": "Scale", "spec": {"replicas": null}, "metadata": {"uid": "$scaled"}})),
        Row::put(&path, scale(1, "$scale")).fails(409, "Conflict", MODIFIED),
        Row::patch(&path, json!({"metadata": {"resourceVersion": "$scale"}, "spec": {"replicas": 1}})).fails(
            409,
            "Conflict",
            &format!("Operation cannot be fulfilled on deployments.apps \"scaled\": {MODIFIED}"),
        ),
        Row::patch(&path, json!({"metadata": {"uid": "other"}, "spec": {"replicas": 1}})).fails(
            409,
            "Conflict",
            "Precondition failed: UID in precondition: other, UID in object meta: $scaled",
        ),
        Row::patch(&path, json!({"spec": {"replicas": -1}})).fails(
            422,
            "Invalid",
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        Row::get(&object).is(json!({"spec": {"replicas": 0}, "metadata": {"generation": 2}})),
        Row::patch(&path, json!({"spec": {"replicas": 5}})).is(json!({"spec": {"replicas": 5}})),
        Row::get(&object).is(json!({"spec": {"replicas": 5}, "metadata": {"generation": 3}})),
        Row::get(&format!("{DEPLOYMENTS}/none/scale")).fails(404, "NotFound", "deployments.apps \"none\" not found"),
    ]
}

fn custom_scale() -> Vec<Row> {
    let widget = |name: &str, spec: Value| json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec});
    let (object, path) = (format!("{WIDGETS}/w"), format!("{WIDGETS}/w/scale"));
    vec![
        Row::post(WIDGETS, widget("w", json!({"replicas": 3})))
            .is(json!({"metadata": {"uid": "$widget", "resourceVersion": "$widget1", "generation": 1}})),
        Row::get(&path).is(json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": {"replicas": 3}, "metadata": {"uid": "$widget"}})),
        Row::patch(&path, json!({"metadata": {"uid": "$widget", "resourceVersion": "$widget1"}, "spec": {"replicas": 0}}))
            .is(json!({"kind": "Scale", "spec": {"replicas": null}})),
        // Nobody looks at the UID here.
        Row::patch(&path, json!({"metadata": {"uid": "other"}, "spec": {"replicas": 1}})).is(json!({"spec": {"replicas": 1}, "metadata": {"uid": "$widget"}})),
        Row::patch(&path, json!({"metadata": {"resourceVersion": "$widget1"}, "spec": {"replicas": 1}})).fails(
            409,
            "Conflict",
            &format!("Operation cannot be fulfilled on widgets.example.org \"w\": {MODIFIED}"),
        ),
        Row::patch(&path, json!({"spec": {"replicas": -1}})).fails(422, "Invalid", "Widget.example.org \"w\" is invalid: .spec.replicas: Invalid value: -1: should be a non-negative integer"),
        Row::patch(&object, json!({"metadata": {"annotations": {"a": "1"}}, "spec": {"replicas": 2}}))
            .is(json!({"spec": {"replicas": 2}, "metadata": {"annotations": {"a": "1"}, "generation": 4}})),
        Row::patch(&object, json!({"metadata": {"annotations": {"a": null}}})).is(json!({"metadata": {"annotations": null, "generation": 4}})),
        Row::patch(&object, json!({"metadata": {"uid": "other"}})).fails(422, "Invalid", "metadata.uid: Invalid value: \"other\": field is immutable"),
        Row::put(&object, widget("w", json!({"replicas": 1}))).fails(422, "Invalid", "must be specified for an update"),
        Row::get(&format!("{WIDGETS}?limit=1")).is(json!({"kind": "WidgetList", "items": [{"kind": "Widget", "apiVersion": "example.org/v1"}]})),
        Row::post(WIDGETS, widget("bare", json!({}))),
        Row::get(&format!("{WIDGETS}/bare/scale")).fails(500, "InternalError", "the spec replicas field \".spec.replicas\" does not exist"),
        Row::patch(&format!("{WIDGETS}/bare/scale"), json!({"spec": {"replicas": 1}})).is(json!({"spec": {"replicas": 1}})),
        Row::get(&format!("{WIDGETS}/none")).fails(404, "NotFound", "widgets.example.org \"none\" not found"),
    ]
}

/// Deletions of the object that was seen, and of no other.
fn preconditions() -> Vec<Row> {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let path = format!("{PODS}/p");
    let only = |preconditions: Value| Row::delete(&path, json!({"preconditions": preconditions}));
    vec![
        Row::post(PODS, pod).is(json!({"metadata": {"uid": "$pod", "resourceVersion": "$pod1"}})),
        Row::patch(&path, json!({"metadata": {"annotations": {"a": "1"}}})).is(json!({"metadata": {"resourceVersion": "$pod2"}})),
        only(json!({"uid": "other"})).fails(
            409,
            "Conflict",
            "Operation cannot be fulfilled on Pod \"p\": the UID in the precondition (other) does not match the UID in record ($pod). The object might have been deleted and then recreated",
        )
        .is(json!({"details": {"name": "p", "kind": "Pod"}})),
        only(json!({"uid": "$pod", "resourceVersion": "$pod1"})).fails(
            409,
            "Conflict",
            "Operation cannot be fulfilled on Pod \"p\": the ResourceVersion in the precondition ($pod1) does not match the ResourceVersion in record ($pod2). The object might have been modified",
        ),
        only(json!({"uid": "$pod", "resourceVersion": "$pod2"})).is(json!({"kind": "Pod", "metadata": {"uid": "$pod"}})),
        Row::get(&path).fails(404, "NotFound", "pods \"p\" not found"),
    ]
}

/// Lists page by page, all of one moment.
fn lists() -> Vec<Row> {
    let mut steps: Vec<_> = ["l1", "l2", "l3"]
        .into_iter()
        .map(|name| {
            let mut lease = lease(name);
            lease["metadata"]["labels"] = json!({"n": name});
            Row::post(LEASES, lease)
        })
        .collect();
    let items = |names: &[&str]| -> Value {
        names
            .iter()
            .map(|name| json!({"metadata": {"name": name}, "kind": null, "apiVersion": null}))
            .collect()
    };
    let whole = json!({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": items(&["l1", "l2", "l3"]),
        "metadata": {"continue": null, "remainingItemCount": null}});
    steps.extend([
        Row::get(LEASES).is(whole.clone()),
        // A cache answers this, in which no page begins.
        Row::get(&format!("{LEASES}?resourceVersion=0&limit=2")).is(whole),
        Row::get(&format!("{LEASES}?limit=2")).is(json!({"items": items(&["l1", "l2"]),
            "metadata": {"continue": "$page2", "remainingItemCount": 1, "resourceVersion": "$list"}})),
        Row::delete(&format!("{LEASES}/l3"), json!({})),
        Row::get(&format!("{LEASES}?limit=2&continue=$page2")).is(json!({"items": items(&["l3"]),
            "metadata": {"continue": null, "remainingItemCount": null, "resourceVersion": "$list"}})),
        Row::get(&format!("{LEASES}?continue=nonsense")).fails(400, "BadRequest", "continue key is not valid"),
        Row::get(&format!("{LEASES}?labelSelector=a%20b")).fails(400, "BadRequest", "unable to parse requirement"),
    ]);
    for (selector, names) in [
        ("fieldSelector=metadata.name%3Dl2", &["l2"][..]),
        ("fieldSelector=metadata.name!%3Dl2", &["l1"]),
        ("labelSelector=n%20in%20(l1,l3)", &["l1"]),
        ("labelSelector=n%20notin%20(l1),n", &["l2"]),
        ("labelSelector=none%20notin%20(l1)", &["l1", "l2"]),
        ("labelSelector=n%3D%3Dl1", &["l1"]),
        ("labelSelector=n!%3Dl1,!none", &["l2"]),
        ("labelSelector=none", &[]),
    ] {
        steps.push(Row::get(&format!("{LEASES}?{selector}")).is(json!({"items": items(names)})));
    }
    steps
}

/// Changes after a version, in order; a watch ends when its time is over.
fn watches() -> Vec<Row> {
    let path = format!("{SECRETS}/w");
    let label = |value: &str| Row::patch(&path, json!({"metadata": {"labels": {"l": value}}}));
    let mut secret = named("Secret", "w");
    secret["metadata"]["labels"] = json!({"l": "no"});
    let watch = |query: &str| Row::get(&format!("{SECRETS}?watch=true&timeoutSeconds={query}"));
    let event = |kind: &str, label: &str, version: &str| {
        json!({"type": kind, "object": {"kind": "Secret", "apiVersion": "v1",
        "metadata": {"name": "w", "labels": {"l": label}, "resourceVersion": version}}})
    };
    vec![
        Row::post(SECRETS, secret).is(json!({"metadata": {"resourceVersion": "$w1"}})),
        label("yes").is(json!({"metadata": {"resourceVersion": "$w2"}})),
        watch("1").is(json!([event("ADDED", "yes", "$w2")])),
        label("no").is(json!({"metadata": {"resourceVersion": "$w3"}})),
        label("yes").is(json!({"metadata": {"resourceVersion": "$w4"}})),
        Row::delete(&path, json!({})),
        watch("1&resourceVersion=$w1").is(json!([
            event("MODIFIED", "yes", "$w2"),
            event("MODIFIED", "no", "$w3"),
            event("MODIFIED", "yes", "$w4"),
            event("DELETED", "yes", "$w5"),
        ])),
        watch("1&resourceVersion=$w1&labelSelector=l%3Dyes").is(json!([
            event("ADDED", "yes", "$w2"),
            event("DELETED", "yes", "$w3"),
            event("ADDED", "yes", "$w4"),
            event("DELETED", "yes", "$w5"),
        ])),
        watch("1&resourceVersion=$w5").is(json!([])),
        // The end of what there was at the beginning.
        watch("1&resourceVersion=0&allowWatchBookmarks=true").is(json!([{"type": "BOOKMARK", "object": {"kind": "Secret", "apiVersion": "v1",
            "metadata": {"resourceVersion": "$bookmark", "annotations": {"k8s.io/initial-events-end": "true"}}}}])),
    ]
}

fn access() -> Vec<Row> {
    let refused =
        |path: &str, message: &str| Row::get(path).by("nobody").fails(403, "Forbidden", message);
    let review = |user: Option<&'static str>, allowed: bool| {
        let attributes = json!({"verb": "list", "resource": "secrets", "namespace": "conformance"});
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}});
        Row::post(REVIEWS, review)
            .by(user)
            .is(json!({"kind": "SelfSubjectAccessReview", "status": {"allowed": allowed}}))
    };
    vec![
        refused(
            SECRETS,
            "secrets is forbidden: User \"nobody\" cannot list resource \"secrets\" in API group \"\" in the namespace \"conformance\"",
        ),
        refused(
            &format!("{SECRETS}/s"),
            "secrets \"s\" is forbidden: User \"nobody\" cannot get resource \"secrets\" in API group \"\" in the namespace \"conformance\"",
        )
        .is(json!({"details": {"name": "s", "kind": "secrets"}})),
        refused(
            &format!("{DEPLOYMENTS}/d/scale"),
            "deployments.apps \"d\" is forbidden: User \"nobody\" cannot get resource \"deployments/scale\" in API group \"apps\" in the namespace \"conformance\"",
        ),
        refused(
            "/api/v1/nodes",
            "nodes is forbidden: User \"nobody\" cannot list resource \"nodes\" in API group \"\" at the cluster scope",
        ),
        refused(
            "/apis/apps/v1/nothings",
            "nothings.apps is forbidden: User \"nobody\" cannot list resource \"nothings\" in API group \"apps\" at the cluster scope",
        ),
        review(Some("nobody"), false),
        review(None, true),
        Row::get("/version").by("nobody").is(json!({"major": "1"})),
    ]
}

/// API priority and fairness, which speaks no JSON.
fn rejection() -> Vec<Row> {
    let list = || Row::get(CONFIG_MAPS).by(REJECTED);
    vec![
        list().is(json!({"kind": "ConfigMapList"})),
        list()
            .once(Before::Rejecting)
            .code(429)
            .retry_after("1")
            .is(json!("Too many requests, please try again later.")),
    ]
}

/// What cannot be continued: the client is to list again.
fn compaction() -> Vec<Row> {
    vec![
        Row::get(&format!("{LEASES}?limit=1")).is(json!({"metadata": {"continue": "$old"}})),
        Row::patch(&format!("{LEASES}/l1"), json!({"spec": {"holderIdentity": "another"}})),
        Row::get(&format!("{LEASES}?limit=1&continue=$old")).once(Before::Compacted).fails(
            410,
            "Expired",
            "The provided continue parameter is too old to display a consistent list result.",
        ),
        Row::get(&format!("{SECRETS}?watch=true&timeoutSeconds=1&resourceVersion=1")).is(json!([{"type": "ERROR",
            "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 1 ("}}])),
    ]
}
