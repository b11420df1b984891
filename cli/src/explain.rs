//! `explain`: one shoot, as it is and why.

use std::time::Duration;

use chrono::{DateTime, Utc};
use kube::Api;
use kube::api::DynamicObject;
use prober::observability::status::ProbeStatus;
use prober::owner_check::OwnerStatus;
use prober::read_only::ReadOnlyProber;
use prober::seed::watch_scope::WatchScope;
use prober_core::config::ResourceRef;
use prober_core::options::{GARDEN, ShownOption};
use prober_core::replicas::{DependentState, MELTDOWN_PROTECTION_ACTIVE};
use serde::Serialize;

use crate::outages::{self, Outages};
use crate::output::{bad, good, table, warn};
use crate::probe::{is_clear, look, report};
use crate::status::{LEASES, leader};
use crate::{commands, output, seed, why};

/// How long one look may take, its connection included.
const LOOK: Duration = Duration::from_secs(15);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    namespace: String,
    state: &'static str,
    because: String,
    /// None when the namespaces cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
    /// What its owner record says, asked for from here; none where the config has no ownerCheck.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<OwnerStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    machines: Option<usize>,
    /// What holds for it besides the config file, and from where; none when the namespaces cannot
    /// be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<[ShownOption; 4]>,
    /// Annotations of its namespace, or of `garden`, that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<String>,
    dependents: Vec<Dependent>,
    /// What looking at the shoot shows; none when it is not probed.
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<ProbeStatus>,
    /// None when no prober is deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    outages: Option<Outages>,
    config_from: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dependent {
    kind: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<i32>,
    held_down: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    remembered: Option<String>,
    /// When the marker was set, as the API server remembers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<DateTime<Utc>>,
    because: String,
}

pub(crate) async fn run(args: commands::Explain) -> anyhow::Result<()> {
    let seed = seed::read(&args.access, WatchScope::Shoot(args.namespace.clone())).await?;
    let prober = &seed.prober;
    let cluster = seed.cluster(&args.namespace)?;
    let (state, because) = why::state(&cluster);
    let options = prober.options(&args.namespace);
    let only_held_down = options.map_or(seed.config.restore_only_held_down, |options| {
        options.restore_only_held_down.value
    });
    let mut dependents = Vec::new();
    for (dependent, observed) in prober.dependents(&args.namespace) {
        let because = why::dependent(dependent, &observed, only_held_down);
        let observed = match observed {
            DependentState::Present(observed) => Some(observed),
            _ => None,
        };
        let held_down = observed
            .as_ref()
            .is_some_and(|observed| observed.marks.held_down);
        let since = if held_down {
            marked_since(&seed.client, &args.namespace, &dependent.resource).await
        } else {
            None
        };
        dependents.push(Dependent {
            kind: dependent.resource.kind.clone(),
            name: dependent.resource.name.clone(),
            replicas: observed.as_ref().map(|observed| observed.replicas),
            ready: observed.as_ref().map(|observed| observed.ready),
            held_down,
            remembered: observed.and_then(|observed| observed.marks.replicas.clone()),
            since,
            because,
        });
    }
    let (machines, paused) = (
        prober.machines(&args.namespace),
        prober.paused(&args.namespace),
    );
    let settings = options.map(|options| options.shown());
    let owner = prober.owner(&args.namespace).await;
    let refused = refused(prober, |namespace| {
        namespace == args.namespace || namespace == GARDEN
    });
    let longest = if args.once {
        LOOK
    } else {
        LOOK + prober.longest_doubt(&args.namespace)
    };
    let looked = |probe: &ProbeStatus| probe.found.is_some() || probe.failure.is_some();
    let probe = look(seed.prober, &args.namespace, longest, |probe| {
        if args.once {
            looked(probe)
        } else {
            is_enough(probe)
        }
    })
    .await;
    let (config_from, namespace, garden) = (
        seed.config_from,
        args.namespace,
        &args.access.garden_namespace,
    );
    let leader = leader(&seed.client, garden, LEASES[0]).await.holder;
    let outages = outages::read(&seed.client, garden, leader.as_deref(), Some(&namespace)).await;
    let answer = Answer {
        namespace,
        state,
        because,
        paused,
        owner,
        machines,
        settings,
        refused,
        dependents,
        probe,
        outages,
        config_from,
    };
    output::write(&answer, args.access.output, || text(&answer))
}

/// The annotations of some namespaces that cannot be read, as they are said to people.
pub(crate) fn refused(prober: &ReadOnlyProber, of: impl Fn(&str) -> bool) -> Vec<String> {
    let refused = prober
        .refused()
        .into_iter()
        .filter(|(namespace, _)| of(namespace));
    refused
        .map(|(namespace, refused)| format!("namespace {namespace}: {refused}"))
        .collect()
}

/// Whether looking on would tell no more: nothing can be learnt now, or a verdict and the state of
/// all leases but one are certain. A zone can be lost by two.
fn is_enough(probe: &ProbeStatus) -> bool {
    probe.failure.is_some()
        || is_clear(probe)
            && probe
                .found
                .as_ref()
                .is_some_and(|found| found.finding.tally.undecided < 2)
}

/// When the marker was set, if the API server's record of who manages which field says so.
async fn marked_since(
    client: &kube::Client,
    namespace: &str,
    resource: &ResourceRef,
) -> Option<DateTime<Utc>> {
    let (group, version) = resource
        .api_version
        .split_once('/')
        .unwrap_or(("", &resource.api_version));
    let gvk = kube::core::GroupVersionKind::gvk(group, version, &resource.kind);
    let (kind, _) = kube::discovery::pinned_kind(client, &gvk).await.ok()?;
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let fields = api
        .get(&resource.name)
        .await
        .ok()?
        .metadata
        .managed_fields?;
    let key = format!("f:{MELTDOWN_PROTECTION_ACTIVE}");
    let entry = fields.into_iter().find(|entry| {
        entry
            .fields_v1
            .as_ref()
            .is_some_and(|fields| !fields.0["f:metadata"]["f:annotations"][&key].is_null())
    })?;
    DateTime::from_timestamp_micros(entry.time?.0.as_microsecond())
}

fn text(answer: &Answer) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text.push_str(&output::line(name, value));
    line("Namespace", &answer.namespace);
    line("State", &format!("{}: {}", answer.state, answer.because));
    match answer.paused {
        Some(true) => line(
            "Paused",
            &warn("yes: its operators want nothing written, in either direction"),
        ),
        Some(false) => {}
        None => line(
            "Paused",
            &warn("could not be read: may namespaces be listed and watched?"),
        ),
    }
    if let Some(owner) = &answer.owner {
        line("Owner", &why::owner(owner));
    }
    line(
        "Machines",
        &answer
            .machines
            .map_or("could not be read".to_owned(), |count| {
                format!("{count} that back nodes")
            }),
    );
    line("Config", &answer.config_from);
    if let Some(settings) = &answer.settings {
        let shown: Vec<_> = settings.iter().map(ToString::to_string).collect();
        line("Settings", &shown.join(", "));
    }
    for refused in &answer.refused {
        line("Refused", &warn(refused));
    }
    text.push('\n');
    let count =
        |count: Option<i32>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let rows: Vec<_> = answer
        .dependents
        .iter()
        .map(|dependent| {
            let since = dependent
                .since
                .map(|since| format!(" (since {})", since.format("%Y-%m-%d %H:%M:%S UTC")))
                .unwrap_or_default();
            let because = format!("{}{since}", dependent.because);
            let because = match dependent.replicas {
                _ if dependent.held_down => bad(&because),
                Some(1..) => good(&because),
                _ => warn(&because),
            };
            vec![
                format!("{}/{}", dependent.kind, dependent.name),
                count(dependent.replicas),
                count(dependent.ready),
                because,
            ]
        })
        .collect();
    text.push_str(&table(&["RESOURCE", "REPLICAS", "READY", "WHY"], &rows));
    text.push('\n');
    match &answer.probe {
        Some(probe) => text.push_str(&report(probe)),
        None if answer.state == "probed" => text.push_str("The shoot could not be looked at.\n"),
        None => text.push_str("Its leases are not looked at, since it is not probed.\n"),
    }
    if let Some(outages) = &answer.outages {
        text.push('\n');
        text.push_str(&outages.text());
    }
    text
}
