//! Every command of every page is run, in the state for which its page is written: what pages
//! search for is in the log, what they ask kubectl for is there.

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;
use testbed::{eventually, scenario};

use crate::book::{blocks, commands};
use crate::repository;
use crate::site::Site;
use crate::tools::CHART;

/// The states, each with the pages that are written for it. A line is a step:
///
/// | Step | |
/// |---|---|
/// | `page NAME N` | runs the next N blocks of this page |
/// | `refused NAME N TEXT` | runs command N of the next block of this page, which is to end with this error |
/// | `prints TEXT` | which the page before has printed |
/// | `$ COMMAND` | runs a command soon; what is indented belongs to it |
/// | `cut`, `heal` | nodes lose the way to the API server and find it again |
/// | `down NAME=N`, `up NAME=N` | waits until Deployments are held down from so many replicas, or have them back |
/// | `start AGENT N`, `probed`, `suspend leader`, `resume`, `restart seed` | as said |
const STORY: &str = r#"
# Nothing is wrong.
$ echo '
    apiVersion: v1
    kind: Node
    metadata: {name: pages}
    status: {addresses: [{type: InternalIP, address: 127.0.0.1}], daemonEndpoints: {kubeletEndpoint: {Port: KUBELET}}}
    ' | kubectl apply -f -
start dependency-watchdog-prober 0
start dependency-watchdog-prober 1
start dependency-watchdog-weeder 0
probed
page README 1
page docs/swap-image 3
page docs/configure 2
page Down 1
page NoLeader 1
page NotProbing 1
page ClockSkew 1
page docs/run-books/README 2
$ kubectl annotate namespace NAMESPACE dependency-watchdog.gardener.cloud/pause=true
page PauseForgotten 2

# A controller that the config names is missing, in an outage too. Then all Machines but one fail.
$ kubectl -n NAMESPACE delete deployment kube-controller-manager
page ProtectionWouldBeRefused 1
cut
down machine-controller-manager=1 cluster-autoscaler=1
page ProtectionBlocked 3
$ kubectl -n NAMESPACE create deployment kube-controller-manager --image=it --replicas=0
$ for machine in $(kubectl -n NAMESPACE get machines -o name | tail -n +2); do
    kubectl -n NAMESPACE patch $machine --subresource=status --type=merge -p '{"status": {"currentStatus": {"phase": "Failed"}}}'
    done
page StuckAtOneCandidate 3
up machine-controller-manager=1 cluster-autoscaler=1
$ kubectl -n NAMESPACE scale deployment kube-controller-manager --replicas=2
heal
$ for machine in $(kubectl -n NAMESPACE get machines -o name); do
    kubectl -n NAMESPACE patch $machine --subresource=status --type=merge -p '{"status": {"currentStatus": {"phase": "Running"}}}'
    done
page StuckAtOneCandidate 1
up THREE

# An outage, after which a pause keeps the prober from the restore.
$ echo '
    {apiVersion: v1, kind: Namespace, metadata: {name: istio-ingress}}
    ---
    {apiVersion: v1, kind: Service, metadata: {name: gateway, namespace: istio-ingress}, spec: {ports: [{port: 443}]}}
    ---
    apiVersion: certificates.k8s.io/v1
    kind: CertificateSigningRequest
    metadata: {name: of-a-kubelet}
    spec:
      signerName: kubernetes.io/kube-apiserver-client-kubelet
      usages: [client auth]
      request: |
        LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIUk1Ia0NBUUF3RnpFVk1CTUdBMVVFQXd3TWIyWXRZUzFyZFdKbGJHVjBNRmt3RXdZ
        SEtvWkl6ajBDQVFZSQpLb1pJemowREFRY0RRZ0FFd3RsR281WFVwOE9PL3JzMFVXb05rQjF5ZFFVdkY3TlBkazJERXMxM3hxQXQ4Yi9iCmxGdXpyUUlz
        YVkrSlNkZDlSbW9KRzNQNTFkR21kTHVGd1pmRTg2QUFNQW9HQ0NxR1NNNDlCQU1DQTBnQU1FVUMKSUF0NWtneEFycXlSVDUxYkJhQnVjMDlZOXEzK00y
        Q3JIK2dDM0FISDFrUkxBaUVBNDlmTkRORE9hMC9zT3MzUgpPZEpKdkpJZi9oK3A5eW5aWFlkcnhKeTZrQkU9Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJF
        UVVFU1QtLS0tLQo=
    ' | kubectl apply -f -
cut
down THREE
page ProtectionActive 3
prints NAMESPACE kube-controller-manager was at 2
prints NAMESPACE machine-controller-manager was at 1
prints NAMESPACE cluster-autoscaler was at 1
page SeedWideOutage 1
page ProtectionActiveTooLong 1
page ProtectionActive 1
$ kubectl -n NAMESPACE scale deployment kube-controller-manager --replicas=2
$ kubectl -n NAMESPACE annotate deployment kube-controller-manager machine-controller-manager \
    dependency-watchdog.gardener.cloud/ignore-scaling-
down THREE
$ kubectl annotate namespace NAMESPACE dependency-watchdog.gardener.cloud/pause=true
heal
page RestoreBlocked 2
up THREE
$ kubectl annotate namespace NAMESPACE dependency-watchdog.gardener.cloud/pause-

# An outage in which the leader is suspended, and one after which replicas cannot be read.
suspend leader
cut
down THREE
resume
page LeaderDidNotAct 2
page ProtectionActiveTooLong 1
up THREE
page ProtectionActiveTooLong 1
down THREE
$ kubectl -n NAMESPACE annotate --overwrite deployment machine-controller-manager dependency-watchdog.gardener.cloud/replicas=many
heal
page MemoryUnusable 2
up THREE

# Whoever applies another number of replicas than the watchdog has restored finds the field to be its, and takes it back.
$ echo '
    {apiVersion: apps/v1, kind: Deployment, metadata: {name: kube-controller-manager, namespace: NAMESPACE}, spec: {replicas: 3}}
    ' | tee controller.yaml
$ kubectl apply --server-side --field-manager=MANAGER -f controller.yaml 2>&1 | grep 'conflict with "dependency-watchdog"'
page docs/swap-image 1
up kube-controller-manager=3
$ kubectl -n NAMESPACE scale deployment kube-controller-manager --replicas=2

# An outage in which the shoot is hibernated, and a controller that the config no longer names.
cut
down THREE
$ kubectl patch cluster NAMESPACE --type=merge -p '{"spec": {"shoot": {"spec": {"hibernation": {"enabled": true}}}}}'
page ProbeEndedWhileHeldDown 2
up THREE
heal
$ kubectl patch cluster NAMESPACE --type=merge -p '{"spec": {"shoot": {"spec": {"hibernation": {"enabled": false}}}}}'
page ProbeEndedWhileHeldDown 1
$ kubectl -n NAMESPACE create deployment former --image=it --replicas=0
$ kubectl -n NAMESPACE patch deployment former --type=merge -p 'HELD-DOWN'
page ProbeEndedWhileHeldDown 1
up former=1
page docs/run-books/README 1
page docs/cli 8

# A right is missing; a shoot without its Secret; a Cluster that says nothing.
$ kubectl get clusterrole gardener.cloud:dependency-watchdog-prober -o json | jq '{rules}' | tee rules.json
$ kubectl patch clusterrole gardener.cloud:dependency-watchdog-prober --type=json \
    -p '[{"op": "replace", "path": "/rules/2/verbs", "value": ["get", "list", "watch"]}]'
start dependency-watchdog-prober 0
$ kubectl create namespace shoot--bed--mute
$ kubectl get cluster NAMESPACE -o json | jq '.metadata = {name: "shoot--bed--mute"}' | kubectl apply -f -
$ echo '
    apiVersion: extensions.gardener.cloud/v1alpha1
    kind: Cluster
    metadata: {name: shoot--bed--blank}
    spec: {cloudProfile: {}, seed: {}}
    ' | kubectl apply -f -
page ProbesFailing 1
page ShootNotProbed 1
page ClusterUnreadable 1

# A config that is refused, one that asks for owner records where there is no DNS server, and one with a kind that does not exist.
$ cp -v dependency-watchdog-prober-1/dep-config.yaml kept.yaml
$ echo 'probeInterval: never' | tee dependency-watchdog-prober-1/dep-config.yaml
page ConfigRefused 2
$ echo '
    ownerCheck: {name: "owner.{{domain}}", value: "{{seed}}", servers: ["127.0.0.1:9"], interval: 2s, timeout: 1s, tolerance: 2s}
    ' | cat kept.yaml - | tee dependency-watchdog-prober-1/dep-config.yaml
page OwnerUnresolved 1
$ sed 's@apps/v1@no.such/v1@' kept.yaml | tee dependency-watchdog-prober-1/dep-config.yaml

# A weeder that may not delete the pod that crash-loops.
$ kubectl patch clusterrole gardener.cloud:dependency-watchdog-weeder --type=json \
    -p '[{"op": "replace", "path": "/rules/0/verbs", "value": ["get", "list", "watch"]}]'
$ echo '
    apiVersion: v1
    kind: Pod
    metadata:
      name: waits
      namespace: NAMESPACE
      labels: {gardener.cloud/role: controlplane, role: controller-manager}
      ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: waits, uid: waits, controller: true}]
    spec: {containers: [{name: c, image: it}]}
    ---
    apiVersion: discovery.k8s.io/v1
    kind: EndpointSlice
    metadata: {name: kube-apiserver, namespace: NAMESPACE, labels: {kubernetes.io/service-name: kube-apiserver}}
    addressType: IPv4
    ports: []
    endpoints: [{addresses: [10.0.0.1], conditions: {ready: false}}]
    ' | kubectl apply -f -
$ kubectl -n NAMESPACE patch pod waits --subresource=status --type=merge -p '{"status": {"phase": "Running", "containerStatuses":
    [{"name": "c", "image": "it", "imageID": "", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}}'
$ kubectl -n NAMESPACE patch endpointslice kube-apiserver --type=json \
    -p '[{"op": "replace", "path": "/endpoints/0/conditions/ready", "value": true}]'
page WeederDeletionsFailing 1

# All rights of the prober are taken away, the seed's API server and a replica are restarted. Then all is as before.
$ kubectl patch clusterrole gardener.cloud:dependency-watchdog-prober --type=merge -p '{"rules": []}'
restart seed
start dependency-watchdog-prober 0
page Blind 2
$ kubectl patch clusterrole gardener.cloud:dependency-watchdog-prober --type=merge --patch-file rules.json
start dependency-watchdog-prober 0
start dependency-watchdog-prober 1

# Nothing is uninstalled in an outage; then all is.
cut
down THREE
refused docs/uninstall 1 not restored
$ kubectl -n garden get deployment dependency-watchdog-prober
heal
page docs/uninstall 1
up THREE
$ ! kubectl -n garden get deployment dependency-watchdog-prober 2>&1
$ kubectl -n NAMESPACE patch deployment cluster-autoscaler --type=merge -p 'HELD-DOWN'
page docs/uninstall 3
up THREE
"#;

/// Words of the story.
const WORDS: [(&str, &str); 2] = [
    (
        "THREE",
        "kube-controller-manager=2 machine-controller-manager=1 cluster-autoscaler=1",
    ),
    (
        "HELD-DOWN",
        r#"{"spec": {"replicas": 0}, "metadata": {"annotations":
        {"dependency-watchdog.gardener.cloud/replicas": "1", "dependency-watchdog.gardener.cloud/meltdown-protection-active": ""}}}"#,
    ),
];

/// Commands that are not run here: page, words, and what they are about or need.
const ELSEWHERE: [(&str, &str, &str); 6] = [
    ("README", "make ", "recipes, which CI runs"),
    ("docs/cli", "kubectl krew ", "a release"),
    ("docs/releases", "", "a release"),
    (
        "docs/swap-image",
        "kubectl apply -k ",
        "objects that another test admits",
    ),
    ("docs/try-locally", "", "Gardener's local setup"),
    ("Panicked", "", "a defect"),
];

#[test]
fn every_command_of_the_pages_runs() -> Result<()> {
    scenario(async |bed| {
        let mut site = Site::new(bed).await?;
        for (page, word, _) in ELSEWHERE {
            let blocks = site.left.get_mut(page).context(page)?;
            blocks.retain(|block| !block.contains(word));
        }
        let install = format!(
            "helm upgrade --install dependency-watchdog {} --namespace=garden --take-ownership --values values.yaml",
            repository::path(CHART).display()
        );
        let notes = site.run(&install).await?;
        // Whoever installs the chart is told how to uninstall it.
        for line in blocks()?["docs/uninstall"][0].lines() {
            ensure!(
                notes.contains(&format!("\n  {line}\n")),
                "{line} is not in {notes}"
            );
        }
        let worded = |story: String, (word, is): &(&str, &str)| story.replace(word, is);
        let story = WORDS.iter().fold(STORY.to_owned(), worded);
        let story = story.replace("\n    ", "\r");
        let mut printed = String::new();
        for step in story
            .lines()
            .filter(|step| !step.is_empty() && !step.starts_with('#'))
        {
            play(&mut site, step, &mut printed)
                .await
                .with_context(|| step.to_owned())?;
        }
        site.left.retain(|_, blocks| !blocks.is_empty());
        ensure!(site.left.is_empty(), "not run: {:#?}", site.left);
        Ok(())
    })
}

/// Does a step of the story.
async fn play(site: &mut Site, step: &str, printed: &mut String) -> Result<()> {
    let shoot = &site.shoot;
    let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
    let words: Vec<_> = rest.split(' ').collect();
    let replicas = words.iter().filter_map(|word| word.split_once('='));
    match (word, &words[..]) {
        ("page", [page, blocks]) => *printed = site.page(page, blocks.parse()?).await?,
        ("prints", _) => {
            let expected = site.worded(rest);
            ensure!(
                printed.contains(&format!("{expected}\n")),
                "not in {printed}"
            );
        }
        ("refused", [page, command, ..]) => {
            let block = &site.left[*page][0];
            let refused = site.run(&commands(block)[command.parse::<usize>()?]).await;
            let refused = format!("{:#}", refused.err().context("it is done")?);
            let expected = rest.splitn(3, ' ').nth(2).context("no text")?;
            ensure!(refused.contains(expected), "{refused}");
        }
        ("$", _) => {
            let command = rest.replace('\r', "\n");
            eventually(&command, async || site.run(&command).await).await?;
        }
        ("cut", _) => shoot.nodes.cut_all(),
        ("probed", _) => shoot.after_probes(2).await?,
        ("heal", _) => shoot.nodes.heal_all(),
        ("down", _) => shoot.held_down(&replicas.collect::<Vec<_>>()).await?,
        ("up", _) => {
            let replicas = replicas.map(|(name, replicas)| Ok((name, replicas.parse()?)));
            shoot
                .free_at(&replicas.collect::<Result<Vec<_>>>()?)
                .await?;
        }
        ("start", [deployment, number]) => site.start(deployment, number).await?,
        ("suspend", ["leader"]) => {
            let mut agents = site.agents.values();
            let leads = agents.find(|agent| !agent.log("\"leading\"").is_empty());
            leads.context("nobody leads")?.pause(true)?;
        }
        ("resume", _) => {
            for agent in site.agents.values() {
                agent.pause(false)?;
            }
        }
        ("restart", ["seed"]) => {
            let server = site.seed.plane();
            server.process().signal(Signal::SIGKILL)?;
            server.start_again().await?;
        }
        _ => bail!("no such step"),
    }
    Ok(())
}
