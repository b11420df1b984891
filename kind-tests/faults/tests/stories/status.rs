//! What a prober shows at `/statusz`, and when it says what needs attention.

use faults::script::tell;

#[test]
#[rustfmt::skip]
fn status_shows_what_is_so() {
    tell(1, &[
        ("a healthy shoot with its numbers, and the config in force",
         r#"prober; probes 3; status /process/agent "prober"; status /process/role "leading"; status /shoots/0/namespace "shoot--soak--000"; status /shoots/0/state "probed"; status /shoots/0/probe/found/verdict "scale_up"; status /shoots/0/probe/found/candidates 3; status /shoots/0/probe/found/expired 0; status /shoots/0/probe/found/expiredAfterSeconds 6.0; status /shoots/0/probe/found/unknownAfterSeconds 8.0; status /config/probeInterval "2s"; page / 200 shoot--soak--000; page / 200 Nothing is held down; page /statusz 200 Nothing"#),
        ("an outage with what is held down and the leases behind it, the oldest first",
         r#"prober; probes 3; cut; all held; probes 2; status /shoots/0/dependents/0/name "kube-controller-manager"; status /shoots/0/dependents/0/condition "held_down"; status /shoots/0/dependents/0/since *; status /shoots/0/probe/found/verdict "scale_down"; status /shoots/0/probe/found/expired 3; status /shoots/0/probe/found/leases/0/state "expired"; status /shoots/0/probe/found/leases/0/node "node-2"; status /shoots/0/probe/found/leases/2/node "node-1"; page / 200 held down by the watchdog; page / 200 scale_down; page / 200 3 of 3 leases expired; page / 200 node-0"#),
        ("what a write waits for, and why one failed",
         r#"prober; probes 3; pause true; hands off; metric dwd_paused_shoots 1; cut; status /shoots/0/dependents/1/waits/for "paused"; status /shoots/0/dependents/1/waits/reason "the pause to be lifted"; page / 200 waits for the pause to be lifted; seed patch deployments: 500; hands on; pause false; status /shoots/0/dependents/1/notScaled *; page / 200 it could not be scaled: ; page / 200 500"#),
        ("an outage in brief on the page, in an Event and in metrics",
         r#"prober; probes 3; status /outages []; cut; all held; heal; all up; status /outages/0/ended *; status /outages/0/namespace "shoot--soak--000"; status /outages/0/end "restored"; status /outages/0/verdict/candidates 3; status /outages/0/writes 8; status /outages/0/heldDown/3/until *; page / 200 of 3 leases expired, ; page / 200 restored after ; page / 200 8 writes by this process; log "outage ended"; event OutageEnded of 3 leases expired, ; metric dwd_outages_total{end="restored"} 1; metric dwd_outage_duration_seconds_count 1"#),
        ("a probe that fails, with its cause",
         r#"prober; probes 3; shoot refused; status /shoots/0/probe/failure/stage "leases"; page / 200 nothing is concluded"#),
        ("who leads, where a replica waits",
         r#"lease prober another; prober; status /process/role "waiting"; status /process/leader "another"; page / 200 Another replica leads"#),
    ]);
}
