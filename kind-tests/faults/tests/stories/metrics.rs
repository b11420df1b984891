//! Metrics and health of both agents.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use faults::script::{Script, tell, told};
use testbed::page::address;

#[test]
#[rustfmt::skip]
fn metrics_and_health_are_served() {
    tell(1, &[
        ("a kind that does not exist hinders no readiness",
         r#"also get,list,watch nothings.none.example.org; config dependentResourceInfos: => dependentResourceInfos:\n- {ref: {kind: Nothing, name: nothing, apiVersion: none.example.org/v1}, optional: true, scaleUp: {}, scaleDown: {}}; prober; metric dwd_seed_known 1; page /healthz 200 [+]probes ok; page /readyz 200 [+]seed ok; page /readyz 200 [+]requests ok; cut; all held"#),
        ("a flag of the Go original's", "flag --metrics-per-shoot; prober; log --metrics-per-shoot is accepted, without effect"),
        ("an outage and its end",
         r#"prober; metric dwd_shoots{state="probed"} 1; metric dwd_leases{state="candidate"} 3; cut; all held; metric dwd_scale_operations_total{direction="down",kind="Deployment",name="kube-controller-manager",result="written"} 1; metric dwd_held_down{kind="Deployment",name="kube-controller-manager"} 1; metric dwd_leases{state="expired"} 3; metric rest_client_requests_total{code="200",method="PATCH" 4; event ScaledDown kube-controller-manager; event ScaledDown "type":"Warning"; event ScaledDown "namespace":"garden"; event ScaledDown shoot--soak--000; heal; all up"#),
        ("a dry run counts once what it would write, and writes nothing",
         r#"flag --dry-run; hands off; prober; probes 3; cut; metric dwd_leases{state="expired"} 3; probes 2; metric dwd_dry_run_writes_total{direction="down",kind="Deployment",name="kube-controller-manager"} 1; others kcm held; heal; metric dwd_leases{state="expired"} 0; probes 2; metric dwd_dry_run_writes_total{direction="up",kind="Deployment",name="kube-controller-manager"} 1; asked write *: 0"#),
        ("with rights to read alone, as a trial has them",
         r#"only get,list,watch deployments.apps,stores.example.org,secrets,namespaces,machines.machine.sapcloud.io,clusters.extensions.gardener.cloud; flag --dry-run; hands off; prober; probes 3; cut; metric dwd_dry_run_writes_total{direction="down",kind="Deployment",name="kube-controller-manager"} 1; metric dwd_dry_run_writes_total{direction="down",kind="Deployment",name="machine-controller-manager"} 1; metric dwd_dry_run_writes_total{direction="down",kind="Deployment",name="cluster-autoscaler"} 1; asked write *: 0"#),
    ]);
    tell(0, &[
        ("a weeder is live and ready", "weeder; metric dwd_seed_known 1; page /healthz 200 [+]weeding ok; page /readyz 200 [+]watches ok"),
        ("a dry run of it counts each pod once, and deletes nothing",
         r#"flag --dry-run; weeder; metric dwd_seed_known 1; recover a; crash a/p; metric dwd_weeder_deletions_total{result="dry_run"} 1; crash a/q; metric dwd_weeder_deletions_total{result="dry_run"} 2; crash a/r; metric dwd_weeder_deletions_total{result="dry_run"} 3; asked write *: 0"#),
        ("with rights to read alone, as a trial has them",
         r#"only get,list,watch pods,endpointslices.discovery.k8s.io; flag --dry-run; weeder; metric dwd_seed_known 1; recover a; crash a/p; metric dwd_weeder_deletions_total{result="dry_run"} 1; asked write *: 0"#),
    ]);
}

#[test]
fn each_metric_is_documented_and_each_documented_one_served() {
    // What is shown only where nothing is written, or where a controller cannot be scaled.
    let absent = ["dwd_dry_run_writes_total", "dwd_left_behind_total"];
    for (title, story, absent) in [
        (
            "Prober",
            "prober; probes 3; metric dwd_shoots{state=\"probed\"} 1; cut; all held",
            &absent[..],
        ),
        ("Weeder", "weeder; metric dwd_seed_known 1", &[]),
    ] {
        let shown = told(1, async move |script| {
            script.tell(story).await?;
            script.metrics().await
        });
        let shown = shown.expect("a story");
        let sections = include_str!("../../../../docs/metrics.md").split("\n## ");
        let ours = sections
            .filter(|section| section.starts_with(title) || section.starts_with("Both agents"));
        let row = |line: &'static str| {
            let (series, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let labels = labels.trim_end_matches('}').split(',');
            let labels: BTreeSet<_> = labels.filter(|label| !label.is_empty()).collect();
            Some((name, (rest.split(' ').next()?, labels)))
        };
        let mut documented: BTreeMap<_, _> = ours.flat_map(str::lines).filter_map(row).collect();
        for series in shown.values.keys() {
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            // Of the series of a histogram one is enough.
            let known = documented.get(name.trim_end_matches("_count"));
            if let Some((_, known)) = known {
                let labels = labels
                    .split("\",")
                    .filter_map(|label| label.split_once('='));
                let labels: BTreeSet<_> = labels.map(|(label, _)| label).collect();
                assert_eq!(labels, *known, "{series}");
            }
        }
        documented.retain(|name, _| !absent.contains(name));
        let documented = documented.iter().map(|(name, (kind, _))| (*name, *kind));
        let shown = shown.types.iter().map(|(name, kind)| (&**name, &**kind));
        assert_eq!(
            shown.collect::<BTreeMap<_, _>>(),
            documented.collect(),
            "{title}"
        );
    }
}

#[tokio::test]
async fn metrics_are_open_metrics_without_labels_by_shoot() -> Result<()> {
    let mut script = Script::new(1, None).await?;
    script.tell("prober; probes 3").await?;
    let address = address(&script.life.log, "/metrics")?;
    let answer = reqwest::get(format!("http://{address}/metrics")).await?;
    let expected = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.headers()["content-type"], expected);
    let text = answer.text().await?;
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert!(!text.contains("shoot--soak"), "{text}");
    script.end().await
}
