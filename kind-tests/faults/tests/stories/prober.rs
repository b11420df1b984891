//! What a prober does, and what it leaves.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use faults::script::{scales, tell, told};
use faults::shoot::{DEPENDENTS, SoakShoot};
use tokio::time::Instant;

#[test]
#[rustfmt::skip]
fn seed_that_answers_badly() {
    tell(1, &[
        ("the API server refuses a write that others have overtaken",
         "prober; probes 3; meanwhile mcm 4; cut; all held; mcm held; asked 409: 1"),
        ("a write without an answer is tried again",
         "config scaleDown: {level: 0} => scaleDown: {level: 0, timeout: 300ms}; prober; probes 3; seed patch deployments mcm: stalls x2; cut; met 1; 4 s; all held; event ScaledDown machine; probes 2; hits 2"),
        ("one that was applied is known by what it leaves (fault 40)",
         "config scaleDown: {level: 0} => scaleDown: {level: 0, timeout: 300ms}; prober; probes 3; seed patch deployments mcm: stalls after x1; cut; met 1; 4 s; all held; event ScaledDown machine; probes 2; hits 1"),
        ("nobody waits for its Retry-After (fault 2)",
         "prober; probes 3; seed patch deployments mcm: throttles 600 x1; cut; met 1; 4 s; all held; event ScaledDown machine; probes 2; hits 1"),
        ("one that keeps failing stops no other",
         "prober; probes 3; seed patch deployments mcm: 500; cut; event ScalingFailed machine; hits 3; kcm held; ca held; store held; over; all held"),
        ("nor does any layer wait for a long Retry-After",
         "prober; probes 3; seed patch deployments mcm: throttles 600; cut; met 5; over; all held"),
        ("an Event says why one was refused",
         r#"prober; probes 3; seed patch deployments mcm: 403 admission webhook "freeze.example.org" denied the request:\n  no freeze x3; cut; event ScalingFailed Cannot be scaled down: access is denied (403): admission webhook "freeze.example.org" denied the request: no freeze; all held; found ForbiddenRequests"#),
        ("without the Machines nothing is concluded (D-27)",
         "seed list machines: 500; others ca 0; prober; cut; probes 8; written; over; kcm held; mcm held; ca 0"),
        ("dependents that cannot be listed are not none",
         "seed list deployments: 500; prober; probes 3; cut; event ScalingFailed kube-controller-manager; over; all held"),
        ("a prober that starts without its seed begins once it is there (fault 52)",
         "seed refused; prober; alone 20; over; probes 2"),
        ("a prober that cannot list Machines is blind",
         "seed list machines: 503; prober; met 5; metric dwd_seed_known 0; over; metric dwd_seed_known 1; probes 1"),
        ("one that cannot list Secrets",
         "seed list secrets: 503; prober; met 5; metric dwd_seed_known 0; over; metric dwd_seed_known 1; probes 1"),
        ("one that cannot list Deployments",
         "seed list deployments: 503; prober; met 5; metric dwd_seed_known 0; over; metric dwd_seed_known 1; probes 1"),
        ("one that cannot list Clusters",
         "seed list clusters: 503; prober; met 5; metric dwd_seed_known 0; over; metric dwd_seed_known 1; probes 1"),
    ]);
}

#[test]
#[rustfmt::skip]
fn shoot_that_answers_badly() {
    tell(1, &[
        ("a healthy shoot costs one request a probe, and the seed none",
         "prober; probes 3; frugal 4"),
        ("one that cannot be asked is scaled in neither direction",
         "prober; probes 3; shoot * *: 503; others ca 0; cut; 12 s; written; over; kcm held; mcm held; ca 0"),
        ("one that asks for time gets it (fault 1)",
         "prober; probes 3; shoot list leases: throttles 5 x1; met 1; alone 4.5; probes 1"),
        ("a prober that is asked to stop meanwhile stops at once",
         "prober; probes 3; shoot * *: throttles 600; met 1; stop prober"),
    ]);
}

#[test]
#[rustfmt::skip]
fn shoots_come_go_and_change() {
    tell(1, &[
        ("a hibernated shoot is left alone, and what is held down stays (D-49)",
         r#"prober; probes 3; cut; all held; cluster {"shoot":{"spec":{"hibernation":{"enabled":true}}}}; hands off; heal; 1 s; alone 5; all held"#),
        ("one whose Cluster is gone",
         "prober; probes 3; cut; all held; cluster gone; hands off; heal; 1 s; alone 5; all held"),
        ("a removed probe writes no more than what is in flight (D-14)",
         "config {level: 1, initialDelay: 1s} => {level: 1, initialDelay: 3s}; prober; probes 3; others kcm held; others mcm held; writes 1; cluster gone; hands off; 1 s; alone 5; written kcm"),
        ("a prober that is asked to stop in mid-flow stops at once, and the next one goes on",
         "config scaleDown: {level: 1} => scaleDown: {level: 1, initialDelay: 25s}; prober; probes 3; cut; mcm held; kcm up; stop prober; heal; 1 s; alone 5; prober; all up"),
        ("a write that is under way at the end is awaited, and told",
         "prober; probes 3; seed patch deployments mcm: delays 0.5; cut; met 1; stop prober; mcm held; event ScaledDown machine"),
        ("one that others have overtaken is not made again (D-14)",
         "prober; probes 3; meanwhile mcm 4; seed get deployments mcm: 500; seed patch deployments mcm: delays 0.5; cut; met 1; stop prober; asked 409: 1; asked 500: 1; hits 1; mcm 4"),
        ("one without an answer holds up nothing",
         "prober; probes 3; cut; all held; seed patch deployments: stalls; heal; met 1; stop prober; log a write has had no answer until the end"),
        ("a grace that changes is applied by the running probe (D-10)",
         "prober; probes 3; grace 300; probes 1; cut; probes 8; written; grace 8; all held"),
        ("a grace as short as a renewal is named, and takes no healthy shoot down (D-79)",
         "grace 2; prober; event GraceTooShort (2s); probes 20; written; cut; all held"),
        ("a shoot that cannot be understood keeps its probe (D-13), and harms no other",
         r#"prober; probes 3; apply {"apiVersion":"extensions.gardener.cloud/v1alpha1","kind":"Cluster","metadata":{"name":"shoot--p--a"},"spec":{"shoot":"text"}}; apply {"apiVersion":"extensions.gardener.cloud/v1alpha1","kind":"Cluster","metadata":{"name":"shoot--p--b"},"spec":{"shoot":null}}; cluster {"shoot":{"apiVersion":8}}; probes 2; cut; all held"#),
        ("a Cluster made again under its name gets a new probe (fault 62)",
         "prober; probes 3; cluster gone; cluster new; probes 2; cut; all held"),
        ("a Machine that cannot be read harms no other, and is counted each time",
         r#"apply {"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"Machine","metadata":{"name":"broken","namespace":"shoot--p--a"},"status":{"currentStatus":8}}; prober; probes 3; metric dwd_unreadable_objects_total{resource="machines"} 1; apply {"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"Machine","metadata":{"name":"broken","namespace":"shoot--p--a"},"status":{"currentStatus":9}}; metric dwd_unreadable_objects_total{resource="machines"} 2; cut; all held"#),
    ]);
}

#[test]
#[rustfmt::skip]
fn shoot_that_hosts_itself_is_left_alone() {
    tell(1, &[
        ("neither probed nor asked about nor reported (GEP-28)",
         r#"owned tolerance: 2s; cluster gone; hands off; apply {"apiVersion":"extensions.gardener.cloud/v1alpha1","kind":"Cluster","metadata":{"name":"kube-system"},"spec":{"shoot":{"spec":{"provider":{"workers":[{"name":"worker","controlPlane":{}}]}},"status":{"lastOperation":{"type":"Reconcile","state":"Succeeded"}}},"seed":{},"cloudProfile":{}}}; prober; metric dwd_shoots{state="self_hosted"} 1; metric dwd_seed_known 1; alone 4; metric dwd_owner_shoots{standing="unresolved"} 0; metric dwd_oldest_complete_probe_seconds 0; written"#),
    ]);
}

#[test]
#[rustfmt::skip]
fn dependents_change_meanwhile() {
    tell(1, &[
        ("one that may not be written delays the others no longer than its timeout, and is counted",
         r#"config {level: 1, initialDelay: 1s} => {level: 1, timeout: 3s}; prober; probes 3; cut; all held; seed patch deployments mcm: 500; heal; kcm up; ca up; metric dwd_left_behind_total{kind="Deployment",name="machine-controller-manager"} 1; mcm held; over; all up"#),
        ("no such kind, and one without spec.replicas, are reported, and delay later levels by their timeouts (SCL-11)",
         r#"also get,list,watch,patch nothings.none.example.org; apply {"apiVersion":"example.org/v1","kind":"Store","metadata":{"name":"bare","namespace":"shoot--soak--000"},"spec":{}}; config dependentResourceInfos: => dependentResourceInfos:\n- {ref: {kind: Nothing, name: nothing, apiVersion: none.example.org/v1}, scaleUp: {level: 0, timeout: 3s}, scaleDown: {level: 0}}\n- {ref: {kind: Store, name: bare, apiVersion: example.org/v1}, scaleUp: {level: 0, timeout: 3s}, scaleDown: {level: 0}}; prober; probes 3; metric dwd_protection_refused{kind="Nothing",name="nothing"} 1; metric dwd_protection_refused{kind="Store",name="bare"} 1; cut; all held; event ScalingFailed no such kind, or its plural is unusual; event ScalingFailed it has no spec.replicas; heal; kcm up; mcm up; metric dwd_left_behind_total{kind="Store",name="bare"} 1; all up"#),
        ("a kind that the seed serves only later is scaled from then on",
         r#"seed list stores: 404; prober; probes 3; metric dwd_protection_refused{kind="Store",name="store"} 1; over; cut; all held"#),
        ("recovery must last where the config says so (D-22)",
         "config probeInterval: 2s => probeInterval: 2s\nscaleUpStabilization: 5s; others kcm held; prober; probes 1; 4.8 s; written; all up"),
        ("a successor of the same name inherits no saved number (fault 37)",
         "prober; probes 3; others mcm 3; cut; all held; others mcm gone; others mcm new 2; all held; heal; all up"),
        ("an operator's word that comes between decision and write is heeded (fault 45)",
         "prober; probes 3; meanwhile mcm ignored; cut; kcm held; ca held; mcm ignored; probes 2; mcm ignored"),
        ("a changed config is applied, and a bad one refused",
         r#"prober; probes 3; config probeTimeout: 2s => probeTimeout: 2; event ConfigRefused probeTimeout; metric dwd_config_refused 1; config probeTimeout: 2 => probeTimeout: 2s; config name: cluster-autoscaler => name: other; metric dwd_config_reloads_total{result="taken"} 1; metric dwd_config_refused 0; cut; kcm held; mcm held; store held; probes 2; ca up; heal; all up"#),
    ]);
}

#[test]
#[rustfmt::skip]
fn settings_of_namespaces() {
    tell(1, &[
        ("a pause on garden stops every write, unless the shoot's namespace says otherwise",
         r#"pause-garden true; hands off; prober; probes 3; cut; metric dwd_leases{state="expired"} 3; probes 2; written; hands on; pause false; all held; pause -; hands off; metric dwd_paused_shoots 1; heal; metric dwd_leases{state="expired"} 0; probes 2; all held; hands on; pause-garden -; all up"#),
        ("a pause that comes during a scale-down cancels it",
         r#"prober; probes 3; seed patch deployments: 500; cut; store held; pause true; hands off; metric dwd_paused_shoots 1; over; pause -; hands on; all held"#),
        ("a value that cannot be read is reported, and what garden sets holds",
         "pause-garden true; pause not for now; hands off; others kcm held; prober; log not for now; probes 4; kcm held; written; metric dwd_paused_shoots 1; hands on; pause 0; all up"),
    ]);
}

#[test]
#[rustfmt::skip]
fn owner_record_decides_over_all_writing() {
    tell(1, &[
        ("one that changes in an outage ends all writing until it is ours again",
         r#"owned tolerance: 1h; owner here; prober; probes 3; cut; all held; owner there; page /ownership/shoot--soak--000 503 says "there", not "here"; hands off; event OwnedElsewhere there; heal; owner-asked 4; all held; alone 5; metric dwd_owner_shoots{standing="elsewhere"} 1; status /shoots/0/owner/standing "elsewhere"; status /shoots/0/owner/elsewhere "there"; status /outages/0/end "still_held_down"; page / 200 the prober neither probes nor writes it; hands on; owner here; all up; event OwnedAgain here; page /ownership/shoot--soak--000 200 ours"#),
        ("one that cannot be resolved is tolerated, and then ends all writing",
         r#"owned tolerance: 2s; owner here; prober; page /ownership/shoot--soak--000 200 says; probes 3; owner-asked 1; owner nobody; metric dwd_owner_checks_total{result="server"} 1; 1 s; page /ownership/shoot--soak--000 200; page /ownership/shoot--soak--000 503 unresolved; hands off; event OwnerUnresolved cannot be resolved; cut; owner-asked 8; written; hands on; owner here; all held"#),
        ("one that changes its mind each second costs no protection afterwards",
         r#"owned tolerance: 1h; owner here; prober; probes 3; owner there; owner-asked 1; owner here; owner-asked 1; owner there; owner-asked 1; owner here; owner-asked 1; metric dwd_owner_shoots{standing="elsewhere"} 0; owner there; owner-asked 2; owner here; owner-asked 2; owner there; owner-asked 2; owner here; owner-asked 2; metric dwd_owner_shoots{standing="ours"} 1; probes 2; cut; all held; heal; all up"#),
        ("one that is taken over with onLoss: passivate is taken to 0 without being probed",
         r#"owned tolerance: 1h, onLoss: passivate; owner here; prober; probes 3; owner there; kcm held; mcm held; ca held; store held; page / 200 the prober does not probe it, and takes its controllers to 0; metric dwd_verdicts -; metric dwd_owner_shoots{standing="elsewhere"} 1; owner here; all up; metric dwd_probes_ended_while_held_down_total 0; found WrongScaleDowns"#),
        ("a shoot that is ours again in mid-outage is protected once its nodes were watched, as at a start",
         r#"owned tolerance: 1h; owner here; prober; probes 3; owner there; page /ownership/shoot--soak--000 503; hands off; cut; 60 s; written; hands on; owner here; page /ownership/shoot--soak--000 200; 1 s; written; all held"#),
        ("a write under way when it turns is given up, and the next ones are not made",
         r#"owned tolerance: 1h; owner here; prober; probes 3; seed patch deployments: stalls; cut; met 1; owner there; page /ownership/shoot--soak--000 503; hands off; over; 20 s; store held; mcm up; ca up; kcm up; hands on; owner here; all held"#),
        ("the section is applied while the prober runs",
         r#"prober; probes 3; owner there; page /ownership/shoot--soak--000 404 no ownerCheck; owned tolerance: 1h; page /ownership/shoot--soak--000 503 elsewhere; owner nobody; config tolerance: 1h => tolerance: 2h; metric dwd_config_reloads_total{result="taken"} 2; owner-asked 2; page /ownership/shoot--soak--000 503 elsewhere; owner there; config tolerance: 2h => tolerance: 1h; hands off; page /ownership/shoot--none--such 404 no; cut; owner-asked 8; written; hands on; owned -; all held; page /ownership/shoot--soak--000 404 no ownerCheck"#),
    ]);
}

#[test]
#[rustfmt::skip]
fn standby_acts_in_the_leaders_place_alone() {
    tell(1, &[
        ("a leader that is suspended in an outage costs the standby's patience, and not the shoot",
         r#"prober; event LeaderElection became leader; probes 3; standby; probes 8; cut; 3 s; suspend prober; all held; event LeaderDidNotAct prober; metric dwd_protected_without_lead_total{direction="down"} 4; metric dwd_protected_without_lead_total{direction="up"} 0"#),
        ("beside a leader that acts it writes nothing in a whole outage and its recovery",
         r#"prober; event LeaderElection became leader; probes 3; standby; probes 8; seed patch deployments: delays 0.15; cut; all held; probes 6; heal; all up; probes 6; metric dwd_protected_without_lead_total{direction="down"} 0; metric dwd_protected_without_lead_total{direction="up"} 0"#),
    ]);
}

#[test]
fn many_shoots_fail_at_once() -> Result<()> {
    // Fault 53
    const SHOOTS: usize = 40;
    /// At most so many protective writes are in flight at once, by the specification.
    const IN_FLIGHT: usize = 32;
    /// How long a slow seed takes to answer a write.
    const ANSWER: Duration = Duration::from_millis(100);
    told(SHOOTS as u16, async |script| {
        let slow = "config initialDelay: 2s => initialDelay: 6s; flag --kube-api-qps=1; flag --kube-api-burst=1; prober; 12 s; seed patch: delays 0.1";
        script.tell(slow).await?;
        let world = script.life.world.clone();
        // First probes are spread over half of the delay.
        let first = |shoot: &Arc<SoakShoot>| shoot.api.requests().all()[0].at;
        let (first, last) = (
            world.shoots.iter().map(first).min(),
            world.shoots.iter().map(first).max(),
        );
        let spread = last.flatten().context("a probe")? - first.flatten().context("a probe")?;
        ensure!((2..4).contains(&spread.as_secs()), "{spread:?}");
        for shoot in &world.shoots {
            shoot.change_nodes("", |node| node.cut = true);
        }
        let writes = DEPENDENTS.len() * SHOOTS;
        script.tell("writes 160; 1 s; writes 160").await?;
        let all = world.seed.requests().all().into_iter().filter(scales);
        let times: Vec<_> = all.filter_map(|record| record.at).collect();
        ensure!(times.len() == writes, "{}", times.len());
        // An answer comes no sooner than this: whatever was asked for within that time was in flight
        // together.
        let together = |begin: &Instant| {
            let within = |at: &&Instant| (*begin..*begin + ANSWER).contains(*at);
            times.iter().filter(within).count()
        };
        let most = times.iter().map(together).max();
        // One or two may be on connections that are still being made.
        let expected = IN_FLIGHT - 2..=IN_FLIGHT;
        ensure!(
            most.is_some_and(|most| expected.contains(&most)),
            "{most:?}"
        );
        // What the alert for a whole seed goes by.
        let shown = r#"metric dwd_held_down_shoots{verdict="scale_down"} 40; metric dwd_shoots{state="probed"} 40"#;
        script.tell(shown).await
    })
}
