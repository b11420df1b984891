//! What a prober finds out by dry runs before an outage.

use faults::script::tell;

#[test]
#[rustfmt::skip]
fn protection_is_rehearsed() {
    tell(1, &[
        ("all of it within a minute of the first complete probe; then no more for hours, and nothing is written",
         "config probeInterval: 2s => probeInterval: 20s; prober; probes 1; rehearsed kcm mcm ca store; 660 s; rehearsed kcm mcm ca store; written; metric dwd_protection_refused -"),
        ("a change is rehearsed too, ten minutes after the last time",
         "config probeInterval: 2s => probeInterval: 20s; prober; rehearsed kcm mcm ca store; others mcm 3; 500 s; rehearsed kcm mcm ca store; 120 s; rehearsed kcm mcm ca store mcm"),
        ("one that was overtaken by a change is soon made again",
         "seed rehearse deployments mcm: 409 x1; prober; rehearsed kcm mcm ca store; 30 s; rehearsed kcm mcm ca store mcm"),
        ("what operators have paused may be needed any time",
         "pause true; hands off; prober; rehearsed kcm mcm ca store; written"),
        ("what is not scaled is not rehearsed",
         "others mcm ignored; prober; rehearsed kcm ca store"),
        ("nor is anything by a standby",
         "lease prober another; prober; probes 1; 70 s; rehearsed"),
        ("nor in a dry run, which needs no rights to write",
         "flag --dry-run; hands off; prober; probes 1; 70 s; rehearsed; asked write *: 0"),
        ("nor during an outage, and after it only when all is up",
         "cut; prober; all held; 70 s; rehearsed; heal; all up; rehearsed kcm mcm ca store"),
        ("nor while the shoot cannot be asked",
         "prober; probes 1; shoot list leases: 500; 70 s; rehearsed"),
        ("one without an answer holds up no protection",
         "seed rehearse deployments: stalls; prober; met 1; cut; all held"),
    ]);
}

#[test]
#[rustfmt::skip]
fn protection_that_would_be_refused_is_shown_before_an_outage() {
    tell(1, &[
        ("a missing right, until the first rehearsal with it",
         r#"config probeInterval: 2s => probeInterval: 20s; only get,list,watch,create,update deployments.apps,stores.example.org,secrets,namespaces,machines.machine.sapcloud.io,clusters.extensions.gardener.cloud,leases.coordination.k8s.io,events; prober; probes 1; metric dwd_protection_refused{kind="Deployment",name="kube-controller-manager"} 1; metric dwd_protection_refused{kind="Store",name="store"} 1; status /shoots/0/dependents/0/condition "running"; page / 200 would be refused; page / 200 cannot patch resource; event ProtectionWouldBeRefused would be refused: ; log protection would be refused in an outage; also get nothings; 600 s; metric dwd_protection_refused -; found ForbiddenRequests"#),
        ("a denial by admission, in its words",
         r#"config probeInterval: 2s => probeInterval: 20s; seed rehearse deployments mcm: 403 admission webhook "freeze.example.org" denied the request:\n  no freeze; prober; probes 1; status /shoots/0/dependents/1/refused "admission webhook \"freeze.example.org\" denied the request: no freeze"; event ProtectionWouldBeRefused no freeze; metric dwd_protection_refused{kind="Deployment",name="machine-controller-manager"} 1; rehearsed kcm mcm ca store; over; 500 s; page / 200 no freeze; 120 s; metric dwd_protection_refused -; page / 200 Nothing; found ForbiddenRequests"#),
        ("an answer that leaves it up",
         r#"seed rehearse deployments mcm: answers {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"machine-controller-manager"},"spec":{"replicas":1}}; prober; probes 1; status /shoots/0/dependents/1/refused "the answer sets spec.replicas to 1 again"; metric dwd_protection_refused{kind="Deployment",name="machine-controller-manager"} 1"#),
        ("a controller that is missing, until it is there",
         r#"others kcm gone; prober; probes 1; metric dwd_protection_refused{kind="Deployment",name="kube-controller-manager"} 1; status /shoots/0/dependents/0/condition "missing"; page / 200 What needs attention; page / 200 it does not exist, though it must; others kcm new 2; metric dwd_protection_refused -; rehearsed kcm mcm ca store"#),
        ("admission that knows no dry runs says nothing",
         r#"seed rehearse deployments: 400 admission webhook "w" does not support dry run; prober; met 3; 1 s; log Unsupported; metric dwd_protection_refused -; written"#),
        ("nor does an API server in trouble",
         "config probeInterval: 2s => probeInterval: 20s; seed rehearse deployments: 503; prober; met 3; 1 s; metric dwd_protection_refused -; over; 600 s; metric dwd_protection_refused -"),
    ]);
}
