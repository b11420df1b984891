//! What a weeder asks for and deletes.

use api_server::Record;
use faults::script::{tell, told};
use serde_json::json;
use testbed::crash_loop::{PodHealth, ROLE, pod, slice};

#[test]
#[rustfmt::skip]
fn pods_are_deleted_when_their_service_is_back() {
    tell(0, &[
        ("it is ready once pods are known", r#"seed list pods: 503; weeder; metric dwd_weeder_watch_restarts_total{resource="pods"} 2; metric dwd_seed_known 0; page /healthz 200 weeding; page /readyz 500 [-]watches; over; page /readyz 200 watches; metric dwd_seed_known 1"#),
        ("once slices are", "seed list endpointslices: 503; weeder; metric dwd_seed_known 0; page /healthz 200 weeding; page /readyz 500 [-]watches; over; page /readyz 200 watches; metric dwd_seed_known 1"),
        ("and once there is an API server, without which it is live", r#"seed refused; weeder; metric dwd_weeder_watch_restarts_total{resource="pods"} 2; metric dwd_seed_known 0; page /healthz 200 weeding; page /readyz 500 [-]watches; over; page /readyz 200 watches; metric dwd_seed_known 1"#),
        ("a DELETE that is under way at the end is told", "weeder; metric dwd_seed_known 1; seed delete pods: delays 0.5; crash a/p; recover a; met 1; stop weeder; event PodDeleted p"),
        ("an Event names the Service that is back, on the Lease", r#"weeder; metric dwd_seed_known 1; crash a/p; recover a; event PodDeleted Pod a/p: crash-looping pod deleted because etcd-main-client is ready again; event PodDeleted "kind":"Lease"; event PodDeleted "namespace":"garden""#),
        ("DELETEs that hang in one namespace hold up no other",
         "weeder; metric dwd_seed_known 1; seed delete pods namespaces/a/: stalls; crash a/1; crash a/2; crash a/3; crash a/4; crash a/5; crash a/6; crash a/7; crash a/8; crash a/9; crash a/10; crash z/p; recover a; met 8; recover z; 4 s; hits 8; not-there z/p"),
        ("windows and deletions are counted",
         r#"weeder; metric dwd_seed_known 1; seed delete pods q: 403; seed delete pods p: 503 x1; crash a/p; crash b/q; recover a; recover b; metric dwd_weeder_deletions_total{result="deleted"} 1; metric dwd_weeder_deletions_total{result="forbidden"} 1; metric dwd_weeder_deletions_total{result="server"} 1; metric dwd_weeder_namespaces 2; metric dwd_weeder_windows_open 2; metric dwd_weeder_windows_opened_total{reason="recovery"} 2; unready a; unready b; metric dwd_weeder_windows_closed_total{reason="not_ready"} 2; metric dwd_weeder_windows_open 0; found ForbiddenRequests"#),
        ("other selectors apply as at a start",
         r#"weeder; metric dwd_seed_known 1; recover a; crash a/q; gone a/q; ready c added; crash a/p other; crash c/r; there a/p; config   etcd-main-client: =>   added: {podSelectors: [{matchLabels: {role: apiserver}}]}\n  etcd-main-client: {podSelectors: [{matchLabels: {role: other}}]}\n  unused:; gone a/p; gone c/r; page /readyz 200 watches; asked list *: 4; recover d added; crash d/s; gone d/s; metric dwd_weeder_windows_closed_total{reason="dropped"} 1; metric dwd_weeder_windows_opened_total{reason="start"} 2; metric dwd_weeder_windows_open 3"#),
        ("a right that is missing is used once it is back, in each namespace",
         r#"only get,list,watch,create,update pods,endpointslices.discovery.k8s.io,leases.coordination.k8s.io; weeder; metric dwd_seed_known 1; crash a/p; crash b/q; recover a; recover b; metric dwd_weeder_deletions_total{result="forbidden"} 2; 9 s; metric dwd_weeder_deletions_total{result="forbidden"} 2; also delete pods; gone a/p; gone b/q; found ForbiddenRequests"#),
        ("without the lead nothing is deleted, and with it at once what a recovery before it calls for",
         r#"lease weeder other; weeder; metric dwd_seed_known 1; crash a/p; recover a; metric dwd_weeder_namespaces 1; 9 s; there a/p; lease weeder -; gone a/p; metric dwd_weeder_windows_opened_total{reason="recovery"} 1; asked list *: 2"#),
    ]);
}

#[test]
#[rustfmt::skip]
fn each_answer_to_a_delete_has_its_word() {
    tell(0, &[
        ("a pod that was replaced since it was judged is not deleted for the one before", r#"weeder; metric dwd_seed_known 1; meanwhile-pod a/p replaced; crash a/p; recover a; metric dwd_weeder_deletions_total{result="replaced"} 1; gone a/p"#),
        ("one that has changed is judged again", r#"weeder; metric dwd_seed_known 1; meanwhile-pod a/p changed; crash a/p; recover a; metric dwd_weeder_deletions_total{result="changed"} 1; gone a/p"#),
        ("kube-apiserver's own words for a UID that differs", r#"weeder; metric dwd_seed_known 1; seed delete pods: 409 StorageError: invalid object, Code: 4, Key: /registry/pods/a/p, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: 7, UID in object meta: 8 x1; crash a/p; recover a; metric dwd_weeder_deletions_total{result="replaced"} 1; 60 s; hits 1; there a/p"#),
        ("and for a version", r#"weeder; metric dwd_seed_known 1; seed delete pods: 409 StorageError: invalid object, Code: 4, Key: /registry/pods/a/p, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ResourceVersion in precondition: 7, ResourceVersion in object meta: 8 x1; crash a/p; recover a; metric dwd_weeder_deletions_total{result="changed"} 1; hits 1; there a/p"#),
        ("a 429 is waited for", r#"weeder; metric dwd_seed_known 1; seed delete pods: throttles 7 x1; crash a/p; recover a; metric dwd_weeder_deletions_total{result="throttled"} 1; 6 s; there a/p; gone a/p"#),
        ("any other conflict is tried again", r#"weeder; metric dwd_seed_known 1; seed delete pods: 409 x1; crash a/p; recover a; metric dwd_weeder_deletions_total{result="conflict"} 1; gone a/p"#),
        ("an error", r#"weeder; metric dwd_seed_known 1; seed delete pods: 500 x1; crash a/p; recover a; metric dwd_weeder_deletions_total{result="server"} 1; gone a/p"#),
        ("a 401", r#"weeder; metric dwd_seed_known 1; seed delete pods: 401 x1; crash a/p; recover a; metric dwd_weeder_deletions_total{result="unauthorized"} 1; gone a/p"#),
        ("a refusal is tried again only after a wait, and the log says why", r#"weeder; metric dwd_seed_known 1; seed delete pods: 403 the freeze:\n  no deletion x1; crash a/p; recover a; metric dwd_weeder_deletions_total{result="forbidden"} 1; log "error":"the freeze: no deletion"; 8 s; there a/p; gone a/p; found ForbiddenRequests"#),
        ("so is an invalid request", r#"weeder; metric dwd_seed_known 1; seed delete pods: 422 x1; crash a/p; recover a; metric dwd_weeder_deletions_total{result="refused"} 1; 8 s; there a/p; gone a/p"#),
        ("a connection that ends", r#"weeder; metric dwd_seed_known 1; seed delete pods: closes x1; crash a/p; recover a; metric dwd_weeder_deletions_total{result="no_answer"} 1; gone a/p"#),
        ("no answer for 10 s", r#"weeder; metric dwd_seed_known 1; seed delete pods: stalls x1; crash a/p; recover a; 9 s; there a/p; metric dwd_weeder_deletions_total{result="no_answer"} 1; gone a/p"#),
        ("an answer that is lost", r#"weeder; metric dwd_seed_known 1; seed delete pods: closes after x1; crash a/p; recover a; metric dwd_weeder_deletions_total{result="no_answer"} 1; gone a/p"#),
        ("somebody else's deletion", r#"weeder; metric dwd_seed_known 1; seed delete pods: 404 x1; crash a/p; recover a; metric dwd_weeder_deletions_total{result="not_found"} 1; there a/p"#),
        ("the log says why a pod was deleted after a recovery", r#"weeder; metric dwd_seed_known 1; crash a/p; recover a; gone a/p; log "because":"etcd-main-client is ready again""#),
        ("and soon after a start", r#"crash a/p; ready a; weeder; gone a/p; log "because":"etcd-main-client is ready""#),
    ]);
}

#[test]
fn start_costs_few_requests() {
    const SHOOTS: usize = 300;
    let asked = told(0, async |script| {
        let store = script.life.world.seed.store().clone();
        for shoot in 0..SHOOTS {
            let namespace = format!("shoot--garden--{shoot}");
            for service in ["etcd-main-client", "kube-apiserver"] {
                store.apply(slice(&namespace, service, true))?;
            }
            for role in ["main", "apiserver", "controller-manager", "scheduler"] {
                let labels = json!({ROLE.0: ROLE.1, "role": role});
                store.apply(pod(&namespace, role, &labels, None, PodHealth::Running))?;
            }
        }
        script
            .tell("weeder; metric dwd_seed_known 1; crash a/p; recover a; gone a/p")
            .await?;
        Ok(script.life.world.seed.requests().all())
    });
    let asked = asked.expect("a story");
    // What all selectors have in common is asked for.
    for (resource, count, selector) in [
        (
            "endpointslices.discovery.k8s.io",
            2,
            "labelSelector=kubernetes.io%2Fservice-name+in+%28etcd-main-client%2Ckube-apiserver%29",
        ),
        (
            "pods",
            4,
            "labelSelector=gardener.cloud%2Frole+in+%28controlplane%29",
        ),
    ] {
        let of = |record: &&Record| record.resource == resource && record.verb != "delete";
        let reads: Vec<_> = asked.iter().filter(of).collect();
        let pages = (count * SHOOTS).div_ceil(500);
        assert_eq!(reads.len(), pages + 1, "{reads:#?}");
        assert!(reads[0].query.contains(selector), "{}", reads[0].query);
    }
}
