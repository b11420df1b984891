//! Every command of every page is run, in the state for which its page is written: what pages
//! search for is in the log, what they ask kubectl for is there.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::Signal;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use testbed::agent::RunningAgent;
use testbed::crash_loop::{self, PodHealth};
use testbed::gardener::{
    CLUSTERS, IGNORE, MACHINES, PROBER, REPLICAS, WEEDER, cluster, definitions, namespace,
};
use testbed::objects::path;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{eventually, scenario};

use crate::book::{blocks, commands, searches};
use crate::repository;
use crate::site::Site;

/// The usual three, held down from their replicas.
const DOWN: [(&str, &str); 3] = [(KCM, "2"), (MCM, "1"), (CA, "1")];
/// The usual three with nothing held down.
const UP: [(&str, i64); 3] = [(KCM, 2), (MCM, 1), (CA, 1)];
/// A controller that only a former config names.
const FORMER: &str = "former";
/// The roles of a seed.
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

#[test]
fn every_command_of_the_pages_runs() -> Result<()> {
    scenario(async |bed| {
        let site = Site::install(bed).await?;
        let mut probers = [site.start(PROBER, 0).await?, site.start(PROBER, 1).await?];
        let _weeder = site.start(WEEDER, 0).await?;
        site.shoot.after_probes(2).await?;
        healthy(&site).await?;
        zone_lost(&site).await?;
        controller_missing(&site).await?;
        outage(&site).await?;
        leader_suspended(&site, &probers).await?;
        hibernated(&site).await?;
        // A replica asks for its rights once a minute, so it is started in time.
        let role = format!("{ROLES}/gardener.cloud:{PROBER}");
        let rules = site.seed.api().get(&role).await?["rules"].take();
        let reading = json!(["get", "list", "watch"]);
        site.seed
            .api()
            .replace(&role, "/rules/2/verbs", &reading)
            .await?;
        probers[0] = site.start(PROBER, 0).await?;
        not_probed(&site).await?;
        configs(&site, &probers[1]).await?;
        weeder(&site).await?;
        site.runs("RightMissing", 1).await?;
        blind(&site, &mut probers, &rules).await?;
        uninstalled(&site).await?;
        site.all_were_run()
    })
}

/// Cuts off all nodes, and waits until the usual three are held down.
async fn cut(site: &Site) -> Result<()> {
    site.shoot.nodes.cut_all();
    site.shoot.held_down(&DOWN).await
}

/// Nothing is wrong.
async fn healthy(site: &Site) -> Result<()> {
    for (page, blocks) in [
        ("README", 1),
        ("docs/swap-image", 3),
        ("docs/configure", 2),
        ("Down", 1),
        ("NoLeader", 1),
        ("NotProbing", 1),
        ("ClockSkew", 1),
        ("docs/run-books/README", 2),
    ] {
        site.runs(page, blocks).await?;
    }
    site.pause(Some("true")).await?;
    site.runs("PauseForgotten", 2).await.map(drop)
}

/// Two of five nodes are cut off, which are a zone.
async fn zone_lost(site: &Site) -> Result<()> {
    let (seed, shoot) = (site.seed.api(), &site.shoot);
    let mut machines = definitions().swap_remove(1);
    machines["metadata"]["name"] = "machinedeployments.machine.sapcloud.io".into();
    machines["spec"]["names"] = json!({"plural": "machinedeployments", "singular": "machinedeployment", "kind": "MachineDeployment"});
    seed.create(&machines).await?;
    let workers = json!({"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineDeployment",
        "metadata": {"name": "workers", "namespace": shoot.namespace}});
    eventually("machinedeployments are served", async || {
        seed.create(&workers).await
    })
    .await?;
    for (number, node) in shoot.nodes.names().iter().enumerate() {
        let zone = json!({"topology.kubernetes.io/zone": if number < 2 { "a" } else { "b" }});
        let labels = json!({"metadata": {"labels": zone}});
        shoot
            .plane
            .api()
            .merge(&format!("/api/v1/nodes/{node}"), &labels)
            .await?;
        let machine = format!("{MACHINES}/namespaces/{}/machines/{node}", shoot.namespace);
        seed.merge(
            &machine,
            &json!({"metadata": {"labels": {"name": "workers"}}}),
        )
        .await?;
    }
    shoot.nodes.cut([0, 1]);
    site.runs("ZoneLost", 2).await?;
    shoot.nodes.heal_all();
    Ok(())
}

/// An outage without kube-controller-manager, which the config names. All Machines but one fail.
async fn controller_missing(site: &Site) -> Result<()> {
    let (seed, shoot) = (site.seed.api(), &site.shoot);
    let deployments = format!("/apis/apps/v1/namespaces/{}/deployments", shoot.namespace);
    seed.delete(&format!("{deployments}/{KCM}")).await?;
    site.runs("ControllerMissing", 1).await?;
    shoot.nodes.cut_all();
    shoot.held_down(&DOWN[1..]).await?;
    site.runs("ProtectionBlocked", 3).await?;
    shoot
        .create_workload("apps/v1", "Deployment", KCM, 0)
        .await?;
    for machine in &shoot.nodes.names()[1..] {
        shoot.set_machine_phase(machine, "Failed").await?;
    }
    site.runs("StuckAtOneCandidate", 3).await?;
    shoot.free_at(&UP[1..]).await?;
    shoot.scale(KCM, 2).await?;
    shoot.nodes.heal_all();
    for machine in &shoot.nodes.names()[1..] {
        shoot.set_machine_phase(machine, "Running").await?;
    }
    site.runs("StuckAtOneCandidate", 1).await?;
    shoot.free_at(&UP).await
}

/// An outage, after which a pause keeps the prober from the restore.
async fn outage(site: &Site) -> Result<()> {
    let (seed, shoot) = (site.seed.api(), &site.shoot);
    let request = CertificateParams::default().serialize_request(&KeyPair::generate()?)?;
    let request = json!({"request": STANDARD.encode(request.pem()?), "usages": ["client auth"],
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet"});
    seed.create_all(&[
        namespace("istio-ingress"),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "gateway", "namespace": "istio-ingress"},
            "spec": {"ports": [{"port": 443}]}}),
        json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "of-a-kubelet"},
            "spec": request}),
    ])
    .await?;
    cut(site).await?;
    let printed = site.runs("ProtectionActive", 3).await?;
    for (name, replicas) in DOWN {
        let line = format!("{} {name} was at {replicas}\n", shoot.namespace);
        ensure!(printed.contains(&line), "no {line} in {printed}");
    }
    site.runs("SeedWideOutage", 1).await?;
    site.runs("ProtectionActiveTooLong", 1).await?;
    site.runs("ProtectionActive", 1).await?;
    shoot.scale(KCM, 2).await?;
    for name in [KCM, MCM] {
        shoot.annotate(name, IGNORE, None).await?;
    }
    shoot.held_down(&DOWN).await?;
    site.pause(Some("true")).await?;
    shoot.nodes.heal_all();
    site.runs("RestoreBlocked", 2).await?;
    shoot.free_at(&UP).await?;
    site.pause(None).await
}

/// An outage in which the leader is suspended, and one after which replicas cannot be read.
async fn leader_suspended(site: &Site, probers: &[RunningAgent; 2]) -> Result<()> {
    let shoot = &site.shoot;
    let leads = |prober: &&RunningAgent| !prober.log("\"leading\"").is_empty();
    let leader = probers.iter().find(leads).context("nobody leads")?;
    leader.pause(true)?;
    cut(site).await?;
    leader.pause(false)?;
    site.runs("LeaderDidNotAct", 2).await?;
    site.runs("ProtectionActiveTooLong", 1).await?;
    shoot.free_at(&UP).await?;
    site.pause(None).await?;
    shoot.held_down(&DOWN).await?;
    shoot.annotate(MCM, REPLICAS, Some("many")).await?;
    shoot.nodes.heal_all();
    site.runs("MemoryUnusable", 2).await?;
    shoot.free_at(&UP).await
}

/// An outage in which the shoot is hibernated, and a controller that the config no longer names.
async fn hibernated(site: &Site) -> Result<()> {
    let (seed, shoot) = (site.seed.api(), &site.shoot);
    cut(site).await?;
    let cluster = format!("{CLUSTERS}/{}", shoot.namespace);
    let hibernation = "/spec/shoot/spec/hibernation";
    seed.replace(&cluster, hibernation, &json!({"enabled": true}))
        .await?;
    site.runs("ProbeEndedWhileHeldDown", 2).await?;
    shoot.free_at(&UP).await?;
    shoot.nodes.heal_all();
    seed.replace(&cluster, hibernation, &json!({"enabled": false}))
        .await?;
    site.pause(None).await?;
    shoot
        .create_workload("apps/v1", "Deployment", FORMER, 0)
        .await?;
    site.hold_down(FORMER).await?;
    site.runs("ProbeEndedWhileHeldDown", 1).await?;
    shoot.free_at(&[(FORMER, 1)]).await?;
    site.runs("docs/run-books/README", 1).await?;
    site.runs("docs/cli", 7).await.map(drop)
}

/// A shoot without its Secret, and one whose Cluster says nothing.
async fn not_probed(site: &Site) -> Result<()> {
    let mut blank = cluster("shoot--bed--blank", None);
    blank["spec"] = json!({"cloudProfile": {}, "seed": {}});
    let mute = cluster("shoot--bed--mute", None);
    site.seed
        .api()
        .create_all(&[namespace("shoot--bed--mute"), mute, blank])
        .await?;
    for page in ["ProbesFailing", "ShootNotProbed", "ClusterUnreadable"] {
        site.runs(page, 1).await?;
    }
    Ok(())
}

/// A config that is refused, and one that asks for owner records where there is no DNS server.
async fn configs(site: &Site, prober: &RunningAgent) -> Result<()> {
    let file = prober.log_file().with_file_name("dep-config.yaml");
    let config = std::fs::read_to_string(&file)?;
    std::fs::write(&file, "probeInterval: never")?;
    site.runs("ConfigRefused", 2).await?;
    let check = json!({"name": "owner.{{domain}}", "value": "{{seed}}", "servers": ["127.0.0.1:9"], "interval": "2s",
        "timeout": "1s", "tolerance": "2s"});
    std::fs::write(&file, format!("{config}\nownerCheck: {check}\n"))?;
    site.runs("OwnerUnresolved", 1).await?;
    // Its kind is not there for the next page.
    std::fs::write(&file, config.replace("apps/v1", "no.such/v1")).map_err(Into::into)
}

/// A weeder that may not delete the pod that crash-loops.
async fn weeder(site: &Site) -> Result<()> {
    let (api, shoot) = (site.seed.api(), site.shoot.namespace.as_str());
    let role = format!("{ROLES}/gardener.cloud:{WEEDER}");
    api.replace(&role, "/rules/0/verbs", &json!(["get", "list", "watch"]))
        .await?;
    let labels = json!({"gardener.cloud/role": "controlplane", "role": "controller-manager"});
    let pod = crash_loop::pod(shoot, "waits", &labels, Some("waits"), PodHealth::Waiting);
    let [not_ready, ready] = [false, true].map(|is| crash_loop::slice(shoot, "kube-apiserver", is));
    api.create_all(&[pod.clone(), not_ready]).await?;
    let status = json!({"status": pod["status"]});
    api.merge(&format!("{}/status", path(&pod)?), &status)
        .await?;
    api.merge(&path(&ready)?, &ready).await?;
    site.runs("WeederDeletionsFailing", 1).await.map(drop)
}

/// All rights of the prober are taken away, the seed's API server and a replica are restarted. Then
/// all is as before.
async fn blind(site: &Site, probers: &mut [RunningAgent; 2], rules: &Value) -> Result<()> {
    let (api, role) = (site.seed.api(), format!("{ROLES}/gardener.cloud:{PROBER}"));
    api.replace(&role, "/rules", &json!([])).await?;
    let server = site.seed.plane();
    server.process().signal(Signal::SIGKILL)?;
    server.start_again().await?;
    probers[0] = site.start(PROBER, 0).await?;
    site.runs("Blind", 2).await?;
    api.replace(&role, "/rules", rules).await?;
    for (number, prober) in probers.iter_mut().enumerate() {
        *prober = site.start(PROBER, number).await?;
    }
    Ok(())
}

/// Nothing is uninstalled in an outage; then all is.
async fn uninstalled(site: &Site) -> Result<()> {
    let shoot = &site.shoot;
    let [_, restore, _] = &commands(&blocks()?["docs/uninstall"][0])[..] else {
        anyhow::bail!("not three commands");
    };
    // Whoever installs the chart is told.
    for line in blocks()?["docs/uninstall"][0].lines() {
        ensure!(
            site.notes.contains(&format!("\n  {line}\n")),
            "{line} is not in {}",
            site.notes
        );
    }
    cut(site).await?;
    let refused = site.run(restore).await.err().context("it is uninstalled")?;
    ensure!(
        format!("{refused:#}").contains("not restored"),
        "{refused:#}"
    );
    let deployment = format!("/apis/apps/v1/namespaces/garden/deployments/{PROBER}");
    site.seed.api().get(&deployment).await?;
    shoot.nodes.heal_all();
    site.runs("docs/uninstall", 1).await?;
    shoot.free_at(&UP).await?;
    ensure!(
        site.seed.api().find(&deployment).await?.is_none(),
        "it is still there"
    );
    site.hold_down(CA).await?;
    site.runs("docs/uninstall", 2).await?;
    shoot.free_at(&UP).await
}

/// Searches for what does not happen to a sound program, or not everywhere, by the source that
/// writes what they find.
const IN_SOURCES: [(&str, &str); 3] = [
    ("OpenFiles", "common/src/process.rs"),
    ("Panicked", "common/src/process.rs"),
    ("Panicked", "prober/src/manager.rs"),
];

#[test]
fn what_is_seldom_logged_is_in_the_sources() -> Result<()> {
    for (page, source) in IN_SOURCES {
        let searches = searches(&commands(&blocks()?[page][0])[0]);
        let source = repository::text(source)?;
        let words = |search: &String| {
            search
                .split('\'')
                .nth(1)
                .is_some_and(|words| source.contains(words))
        };
        ensure!(searches.iter().any(words), "{page}: {searches:?}");
    }
    Ok(())
}

#[test]
fn forced_restore_keeps_its_pause() -> Result<()> {
    // Pasted together, what came back would be at 0 again within a second.
    let blocks = blocks()?.into_values().flatten();
    let forced: Vec<_> = blocks
        .filter(|block| block.contains("--force --yes"))
        .collect();
    ensure!(forced.len() > 3, "only {forced:?}");
    let unpause = |block: &&String| block.contains("/pause-");
    ensure!(!forced.iter().any(|block| unpause(&block)), "{forced:#?}");
    Ok(())
}
