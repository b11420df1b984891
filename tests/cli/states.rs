//! States of shoots, each real, and how `status` and `explain` of the running prober show them.

use api_server::{Fault, Network, Record, User, When};
use serde::Deserialize;
use serde_json::json;
use testbed::dns::{Dns, Reply};
use testbed::gardener;
use testbed::prober::dependent;

use crate::world::{self, ASKING, DEPLOYMENTS, World, file, holds, until_holds};

/// A state that an operator can meet, and how it is shown.
#[derive(Deserialize)]
struct State {
    /// End of the shoot's namespace.
    shoot: String,
    /// The steps that make it.
    #[serde(default)]
    by: Vec<String>,
    /// Parts of its line in `status`, and of what stands above all lines, with one blank between words.
    status: Vec<String>,
    /// Parts of `explain`. The page shows them, too, and of a calm shoot the state.
    explain: Vec<String>,
    /// Whether it needs no attention.
    #[serde(default)]
    calm: bool,
    /// Series that tell of it: one above 0 begins so.
    metric: String,
    /// Alert on that metric; none where the state is wanted.
    alert: Option<String>,
}

const OF_SHOOTS: &str = r#"
- shoot: healthy
  status: [probed 5 -]
  explain: ["scale_up: the nodes reach their API server", 5 Machines back nodes, standbyProtects true (config)]
  calm: true
  metric: dwd_shoots{state="probed"}
- shoot: nosecret
  by: [delete secrets shoot-access-dependency-watchdog-probe]
  status: ["probed 5 - probes fail (", " at kubeconfig), so nothing is concluded: ", " in a row since "]
  explain: ["so nothing is concluded: "]
  metric: dwd_probes_total{stage="kubeconfig"
  alert: ProbesFailing
- shoot: unauthorized
  by: [answer 401]
  status: ["probed 5 - probes fail (unauthorized at ", " in a row since "]
  explain: ["(unauthorized at ", "so nothing is concluded: "]
  metric: dwd_probes_total{stage="leases",result="unauthorized"}
  alert: ProbesFailing
- shoot: forbidden
  by: [answer 403]
  status: ["probed 5 - probes fail (forbidden at leases), so nothing is concluded: access is denied (403)"]
  explain: ["(forbidden at leases), so nothing is concluded: access is denied (403)"]
  metric: dwd_probes_total{stage="leases",result="forbidden"}
  alert: ProbesFailing
- shoot: tls
  by: ["server URL\n    tls-server-name: nobody.example.org"]
  status: [probed 5 - probes fail (, nobody.example.org]
  explain: ["so nothing is concluded: ", nobody.example.org]
  metric: dwd_probes_total{stage=
  alert: ProbesFailing
- shoot: dns
  # A label of 64 characters, for which nobody is asked.
  by: ["server https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.invalid:443\n    tls-server-name: localhost"]
  status: ["probed 5 - probes fail (dns at ", Name or service not known]
  explain: ["(dns at ", "so nothing is concluded: the host name cannot be resolved: "]
  metric: dwd_probes_total{stage="leases",result="dns"}
  alert: ProbesFailing
- shoot: unreachable
  by: [refuse]
  status: [probed 5 - probes fail (, " in a row since "]
  explain: ["so nothing is concluded: "]
  metric: dwd_probes_total{stage=
  alert: ProbesFailing
- shoot: slow
  by: [stall]
  status: ["probed 5 - probes fail (timeout at ", " in a row since "]
  explain: ["(timeout at ", "so nothing is concluded: "]
  metric: dwd_probes_total{stage="leases",result="timeout"}
  alert: ProbesFailing
- shoot: nomachine
  by: [delete machines]
  status: ["probed 0 - ", not a single Machine, no Machine backs a node]
  explain: ["hold_no_machines: ", no Machine backs a node]
  metric: dwd_verdicts{verdict="hold_no_machines"}
- shoot: asleep
  by: ["cluster {shoot: {spec: {hibernation: {enabled: true}}}}"]
  status: [hibernated 5 -]
  explain: ["hibernated: it hibernates or is about to: it is not probed"]
  calm: true
  metric: dwd_shoots{state="hibernated"}
- shoot: migrating
  by: ["cluster {shoot: {status: {lastOperation: {type: Migrate, state: Processing, progress: 10}}}}"]
  status: [migrating 5 -]
  explain: [its control plane moves to another seed]
  calm: true
  metric: dwd_shoots{state="migrating"}
- shoot: paused
  by: ["annotate pause: 'true'", hold down]
  status: ["probed 5 kube-controller-manager, machine-controller-manager, cluster-autoscaler", pause true (namespace)]
  explain: [its operators want nothing written, it comes back with 2 replicas, its write waits for the pause to be lifted]
  metric: dwd_paused_shoots
  alert: PauseForgotten
- shoot: settings
  by:
  - "annotate pause: 'false'"
  - "annotate restore-only-held-down: 'true'"
  - "deployment kube-controller-manager {spec: {replicas: 0}}"
  status: ["probed 5 - pause false (namespace); restoreOnlyHeldDown true (namespace); Deployment/kube-controller-manager", scaled to 0 not by the watchdog]
  explain: [with restoreOnlyHeldDown it stays so]
  calm: true
  metric: dwd_shoots{state="probed"}
- shoot: ignored
  by: ["deployment machine-controller-manager {metadata: {annotations: {dependency-watchdog.gardener.cloud/ignore-scaling: 'true'}}}"]
  status: [probed 5 - Deployment/machine-controller-manager, annotated with ignore-scaling]
  explain: [annotated with ignore-scaling]
  calm: true
  metric: dwd_shoots{state="probed"}
- shoot: optional
  by: [delete deployments.apps cluster-autoscaler]
  status: [probed 5 -]
  explain: ["it does not exist, which is no error since it is optional"]
  calm: true
  metric: dwd_shoots{state="probed"}
- shoot: missing
  by: [delete deployments.apps kube-controller-manager]
  status: ["probed 5 - Deployment/kube-controller-manager: it does not exist"]
  explain: [it does not exist]
  metric: dwd_protection_refused{kind="Deployment",name="kube-controller-manager"}
  alert: ProtectionWouldBeRefused
- shoot: grace
  by: ["cluster {shoot: {spec: {kubernetes: {kubeControllerManager: {nodeMonitorGracePeriod: 1s}}}}}"]
  status: [probed 5, its grace is too short]
  explain: [is shorter than two renewals of the nodes' leases]
  metric: dwd_short_grace_shoots
- shoot: outage
  by: [cut]
  status: ["probed 5 kube-controller-manager, machine-controller-manager, cluster-autoscaler", in an outage]
  explain:
  - "scale_down: in an outage, the nodes have lost the way to their API server"
  - "held down by the watchdog; it comes back with 1 replicas (since "
  - expired
  metric: dwd_held_down{kind="Deployment",name="kube-controller-manager"}
  alert: ProtectionActive
- shoot: unprotected
  by: [forbid kube-controller-manager 403, cut]
  status: [in an outage, nodes are marked Unknown since, "Deployment/kube-controller-manager at ", "ready: not protected; it could not be scaled: access is denied (403)"]
  explain: ["ready: not protected; it could not be scaled: access is denied (403)", nodes are marked Unknown since]
  metric: dwd_scale_operations_total{direction="down",kind="Deployment",name="kube-controller-manager",result="forbidden"}
  alert: ProtectionBlocked
- shoot: held
  by: [answer 503, hold down]
  status: ["probed 5 kube-controller-manager, machine-controller-manager, cluster-autoscaler", "probes fail (server at "]
  explain:
  - "so nothing is concluded: the API server failed (503)"
  - "held down by the watchdog; it comes back with 2 replicas (since "
  metric: dwd_held_down_seconds{kind="Deployment",name="kube-controller-manager"}
  alert: ProtectionActiveTooLong
- shoot: restoring
  by: [forbid cluster-autoscaler 503, hold down]
  status: [probed 5 cluster-autoscaler being restored]
  explain: ["it could not be scaled: "]
  metric: dwd_held_down_shoots{verdict="scale_up"}
  alert: RestoreBlocked
"#;

/// States of the whole seed, and of shoots whose owner is asked for.
const OF_THE_SEED: &str = r#"
- shoot: unscalable
  by: ["cluster {seed: {metadata: {name: here}}}"]
  status: ["probed 5 - Unknown/nobody-scales-it: it is not protected; it could not be scaled: no such kind"]
  explain: ["it is not protected; it could not be scaled: no such kind, or its plural is unusual"]
  metric: dwd_protection_refused{kind="Unknown",name="nobody-scales-it"}
  alert: ProtectionWouldBeRefused
- shoot: elsewhere
  by: ["cluster {seed: {metadata: {name: there}}}"]
  status: ['owned by another seed: shoot--a--elsewhere.example.org says "here", not "there"']
  explain: ['owned by another seed: shoot--a--elsewhere.example.org says "here", not "there"; the prober neither probes nor writes it']
  metric: dwd_owner_shoots{standing="elsewhere"}
- shoot: ownerless
  status: ["not known to be ours: its name cannot be resolved: "]
  explain: ["for longer than is tolerated, the prober leaves the shoot alone"]
  metric: dwd_owner_shoots{standing="unresolved"}
  alert: OwnerUnresolved
"#;

fn states(rows: &str) -> Vec<State> {
    let mut states: Vec<State> = serde_saphyr::from_str(rows).expect("rows");
    for state in &mut states {
        state.shoot.insert_str(0, "shoot--a--");
    }
    states
}

/// Does a step that makes a state.
fn step(world: &World, shoot: &str, step: &str) {
    let store = world.seed.store();
    let (api, nodes) = &world.shoots[shoot];
    let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
    let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
    let code = || second.parse().or(first.parse()).expect("a code");
    match (word, first) {
        ("cut", "") => nodes.cut_all(),
        ("hold", _) => world.hold_down(shoot),
        ("refuse", _) => api.set_network(Network::Refused),
        ("stall", _) => drop(api.faults().add(When::any(), Fault::Stall)),
        ("answer", _) => drop(api.faults().add(When::any(), Fault::status(code()))),
        ("forbid", name) => {
            let [namespace, name] = [shoot, name].map(str::to_owned);
            let is_write = move |record: &Record| {
                record.verb == "patch" && record.namespace == namespace && record.name == name
            };
            let refused = Fault::status(code());
            world.seed.faults().add(When::matches(is_write), refused);
        }
        ("server", _) => {
            let url = api.url();
            let now = format!("server: {}", rest.replace("URL", &url));
            let kubeconfig = api.kubeconfig_at(&url, "probe");
            let kubeconfig = kubeconfig.replace(&format!("server: {url}"), &now);
            let secret = gardener::probe_secret(shoot, &kubeconfig);
            store.apply(secret).expect("a Secret");
        }
        ("delete", "machines") => {
            for node in nodes.names() {
                let deleted = store.delete("machines.machine.sapcloud.io", shoot, node);
                deleted.expect("a Machine");
            }
        }
        ("delete", resource) => drop(store.delete(resource, shoot, second).expect("it exists")),
        ("cluster", _) => {
            let clusters = "clusters.extensions.gardener.cloud";
            world.patch(clusters, "", shoot, &format!("spec: {rest}"));
        }
        ("annotate", _) => {
            let annotation = format!("dependency-watchdog.gardener.cloud/{rest}");
            let annotations = format!("metadata: {{annotations: {{{annotation}}}}}");
            world.patch("namespaces", "", shoot, &annotations);
        }
        ("deployment", name) => world.patch(DEPLOYMENTS, shoot, name, second),
        _ => unreachable!("no such step: {step}"),
    }
}

fn make(world: &World, states: &[State]) {
    for state in states {
        state.by.iter().for_each(|by| step(world, &state.shoot, by));
    }
}

fn shoots(states: &[State]) -> Vec<&str> {
    states.iter().map(|state| &*state.shoot).collect()
}

#[tokio::test]
async fn each_state_is_shown_with_its_cause_to_whoever_may_only_ask_the_prober() {
    let states = states(OF_SHOOTS);
    let world = World::probed(&shoots(&states)).await;
    make(&world, &states);
    all_are_shown(&world, &states).await;
    // The rows of other shoots are none of its business.
    let asleep = world.json("explain shoot--a--asleep").await;
    assert_eq!(asleep["seed"]["shoots"], json!([]), "{asleep}");
    // An outage that is over is told as it was observed.
    let (_, nodes) = &world.shoots["shoot--a--outage"];
    nodes.heal_all();
    let observed = "The last outages, as prober-a has observed them:";
    let outage = async || world.text("explain shoot--a--outage").await;
    until_holds(&[observed, "; restored after "], outage).await;
    let status = world.json("status").await;
    assert_eq!(status["answeredBy"], "prober-a", "{status}");
    holds(&status["outages"].to_string(), &["shoot--a--outage"]);
    let told = world.refused("explain shoot--a--nope").await;
    holds(&told, &["the prober knows no Cluster \"shoot--a--nope\""]);
    // In the prober's own pod its own address is asked.
    let address = world.address("prober-a");
    let inside = format!("explain shoot--a--optional --address {address}");
    holds(&world.text(&inside).await, &["scale_up: "]);
}

#[tokio::test]
async fn states_of_the_seed_and_of_owner_records_are_shown_with_their_causes() {
    let states = states(OF_THE_SEED);
    let dns = Dns::start(Reply::text("here")).await.expect("a DNS server");
    let unscalable = dependent("apps/v1", "Unknown", "nobody-scales-it", 0, 0);
    let with_it = format!("- {unscalable}\nkubeConfigSecretName");
    let config = world::config().replace("kubeConfigSecretName", &with_it);
    let owner = format!(
        "ownerCheck: {{name: '{{{{namespace}}}}.example.org', value: '{{{{seed}}}}', servers: ['{}'], interval: 1s, timeout: 300ms, tolerance: 2s}}\n",
        dns.address()
    );
    let mut world = World::configured(&shoots(&states), config + &owner).await;
    make(&world, &states);
    // It may list a kind that there is not, and so learns that.
    let admin = User::admin("prober");
    world.seed.access().grant("prober", admin);
    world.join("prober-a").await;
    all_are_shown(&world, &states).await;
    let shown = world.text("status").await;
    holds(&shown, &["No outage has ended since prober-a began."]);
}

/// Words with one blank between them.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn all_are_shown(world: &World, states: &[State]) {
    world.may(ASKING);
    let rules = file("deploy/kustomize/components/monitoring/prometheus-rule.yaml");
    for state in states {
        until_holds(&state.status, async || {
            let text = world.text("status").await;
            let above = text.split("\nNAMESPACE").next().unwrap_or_default();
            let mut lines = text.lines();
            let line = lines.find(|line| line.starts_with(&state.shoot));
            words(&format!("{above} {}", line.unwrap_or_default()))
        })
        .await;
        let explained = async || words(&world.text(&format!("explain {}", state.shoot)).await);
        until_holds(&state.explain, explained).await;
        let state_in_a_word = [state.status[0]
            .split(' ')
            .next()
            .unwrap_or_default()
            .to_owned()];
        let of_page = match state.calm {
            true => &state_in_a_word[..],
            false => &state.explain,
        };
        let of_shoot = async || on_page_of(&world.page("prober-a", "/statusz").await, &state.shoot);
        until_holds(of_page, of_shoot).await;
        until_holds(&[&state.metric], async || world.metrics().await).await;
        if let Some(alert) = &state.alert {
            let begin = format!("- alert: DependencyWatchdog{alert}\n");
            let (_, rule) = rules.split_once(&begin).expect(alert);
            let rule = rule.split("- alert:").next().unwrap_or_default();
            let name = state.metric.split('{').next().unwrap_or_default();
            holds(rule, &[name]);
        }
    }
    let mut asked = world.asked().into_iter();
    let beyond = asked.find(|record| record.is_write() || record.status == Some(403));
    assert_eq!(beyond, None);
}

/// What the page says above all shoots, and of this one: in its card, or in its row.
fn on_page_of(page: &str, shoot: &str) -> String {
    let mut pieces = page
        .split("<section")
        .flat_map(|section| section.split("<tr>"));
    let above = pieces.next().unwrap_or_default();
    let of_shoot = pieces.filter(|piece| piece.contains(shoot));
    let html = [above]
        .into_iter()
        .chain(of_shoot)
        .collect::<Vec<_>>()
        .join(" ");
    let mut text = String::new();
    for piece in html.split('<') {
        text += piece.split_once('>').map_or(piece, |(_, text)| text);
    }
    for (mark, is) in [
        ("&quot;", "\""),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ] {
        text = text.replace(mark, is);
    }
    words(&text)
}
