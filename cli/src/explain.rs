//! `explain`: one shoot, as it is and why.

use std::time::Duration;

use chrono::{DateTime, Utc};
use common::status::TIMESTAMP;
use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::discovery::pinned_kind;
use kube::{Api, Client};
use prober::{Fact, OwnerStatus, ProbeStatus, ShootState, ShownOption, Tone, WatchScope, list};
use prober_core::config::ResourceRef;
use prober_core::options::GARDEN;
use prober_core::replicas::{DependentState, MELTDOWN_PROTECTION_ACTIVE};
use serde::Serialize;

use crate::commands::ExplainArgs;
use crate::outages::{self, ObservedOutages};
use crate::output::{self, count, lines, paint, table};
use crate::probe::{self, is_clear, probe_until};
use crate::seed::{SeedReader, ShootSummary};
use crate::{leader, why};

/// How long one probe may take, its connection included.
const ONE_PROBE: Duration = Duration::from_secs(15);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    #[serde(flatten)]
    shoot: ShootSummary,
    because: String,
    /// What holds for it besides the config file, and from where; none when the namespaces cannot
    /// be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<[ShownOption; 4]>,
    /// Annotations of its namespace, or of `garden`, that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<String>,
    dependents: Vec<ExplainedDependent>,
    /// What a probe shows; none when it is not probed.
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<ProbeStatus>,
    /// None when no prober is deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    outages: Option<ObservedOutages>,
    config_from: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExplainedDependent {
    #[serde(flatten)]
    resource: ResourceRef,
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

pub(crate) async fn run(args: ExplainArgs) -> anyhow::Result<()> {
    let namespace = args.namespace;
    let seed = SeedReader::open(&args.seed, WatchScope::Shoot(namespace.clone())).await?;
    let cluster = seed.cluster(&namespace)?;
    let prober = &seed.prober;
    let owner = prober.owner(&namespace).await;
    let shoot = seed.summary(namespace, &cluster, owner);
    let namespace = shoot.namespace.clone();
    let options = prober.options(&namespace);
    let mut explanation = Explanation {
        because: shoot.state.meaning(),
        shoot,
        settings: options.as_ref().map(ShownOption::all),
        refused: seed.refused(|other| other == namespace || other == GARDEN),
        dependents: dependents(&seed, &namespace).await,
        probe: None,
        outages: None,
        config_from: seed.config_from,
    };
    let limit = if args.once {
        ONE_PROBE
    } else {
        ONE_PROBE + prober.longest_doubt(&namespace)
    };
    let enough = |probe: &ProbeStatus| {
        if args.once {
            probe.found.is_some() || probe.failure.is_some()
        } else {
            is_enough(probe)
        }
    };
    explanation.probe = probe_until(prober, &namespace, limit, enough).await;
    let (client, garden) = (&seed.client, &args.seed.garden_namespace);
    let leader = leader::read(client, garden, leader::PROBER).await.holder;
    explanation.outages = outages::read(client, garden, leader.as_deref(), Some(&namespace)).await;
    output::write(&explanation, args.seed.output, || explanation.text())
}

async fn dependents(seed: &SeedReader, namespace: &str) -> Vec<ExplainedDependent> {
    let options = seed.prober.options(namespace);
    let configured = seed.config.restore_only_held_down;
    let only_held_down = options.map_or(configured, |options| options.restore_only_held_down.value);
    let mut explained = Vec::new();
    for (dependent, state) in seed.prober.dependents(namespace) {
        let because = why::dependent(dependent, &state, only_held_down);
        let resource = dependent.resource.clone();
        let observed = match state {
            DependentState::Present(observed) => Some(observed),
            _ => None,
        };
        let held_down = observed
            .as_ref()
            .is_some_and(|observed| observed.marks.held_down);
        let since = if held_down {
            marked_since(&seed.client, namespace, &resource).await
        } else {
            None
        };
        explained.push(ExplainedDependent {
            resource,
            replicas: observed.as_ref().map(|observed| observed.replicas),
            ready: observed.as_ref().map(|observed| observed.ready),
            held_down,
            remembered: observed.and_then(|observed| observed.marks.replicas.clone()),
            since,
            because,
        });
    }
    explained
}

/// Whether more probes would tell no more: nothing can be learnt now, or a verdict and the state of
/// all leases but one are certain. A zone can be lost by two.
fn is_enough(probe: &ProbeStatus) -> bool {
    let found = probe.found.as_ref();
    let certain = found.is_some_and(|found| found.outcome.finding.tally.undecided < 2);
    probe.failure.is_some() || is_clear(probe) && certain
}

/// When the marker was set, if the API server's record of who manages which field says so.
async fn marked_since(
    client: &Client,
    namespace: &str,
    resource: &ResourceRef,
) -> Option<DateTime<Utc>> {
    let api_version = resource.api_version.as_str();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let gvk = GroupVersionKind::gvk(group, version, &resource.kind);
    let (kind, _) = pinned_kind(client, &gvk).await.ok()?;
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let object = api.get(&resource.name).await.ok()?;
    let marker = format!("f:{MELTDOWN_PROTECTION_ACTIVE}");
    let entry = object.metadata.managed_fields?.into_iter().find(|entry| {
        let fields = entry.fields_v1.as_ref();
        fields.is_some_and(|fields| !fields.0["f:metadata"]["f:annotations"][&marker].is_null())
    })?;
    DateTime::from_timestamp_micros(entry.time?.0.as_microsecond())
}

impl Explanation {
    fn text(&self) -> String {
        let mut text = lines(&self.facts());
        let rows = self.dependents.iter().map(ExplainedDependent::row);
        let dependents = table(["RESOURCE", "REPLICAS", "READY", "WHY"], rows.collect());
        text.push_str(&format!("\n{dependents}\n"));
        text.push_str(&match &self.probe {
            Some(probe) => probe::text(probe),
            None if self.shoot.state == ShootState::Probed => {
                "The shoot could not be probed.\n".to_owned()
            }
            None => "Its leases are not read, since it is not probed.\n".to_owned(),
        });
        if let Some(outages) = &self.outages {
            text.push_str(&format!("\n{}", outages.text()));
        }
        text
    }

    fn facts(&self) -> Vec<Fact> {
        let mut facts = vec![
            Fact::new(Tone::Soft, "Namespace", &self.shoot.namespace),
            self.shoot.state.fact(),
        ];
        match self.shoot.paused {
            Some(true) => facts.push(Fact::paused()),
            Some(false) => {}
            None => facts.push(Fact::new(
                Tone::Warn,
                "Paused",
                "could not be read: may namespaces be listed and watched?",
            )),
        }
        facts.extend(self.shoot.owner.as_ref().map(OwnerStatus::fact));
        let machines = match self.shoot.machines {
            Some(count) => format!("{count} that back nodes"),
            None => "could not be read".to_owned(),
        };
        facts.push(Fact::new(Tone::Soft, "Machines", machines));
        facts.push(Fact::new(Tone::Soft, "Config", &self.config_from));
        if let Some(settings) = &self.settings {
            facts.push(Fact::new(Tone::Soft, "Settings", list(settings)));
        }
        let refused = self.refused.iter();
        facts.extend(refused.map(|refused| Fact::new(Tone::Warn, "Refused", refused)));
        facts
    }
}

impl ExplainedDependent {
    fn row(&self) -> [String; 4] {
        let since = self
            .since
            .map(|since| format!(" (since {})", since.format(TIMESTAMP)));
        let because = format!("{}{}", self.because, since.unwrap_or_default());
        let tone = match self.replicas {
            _ if self.held_down => Tone::Bad,
            Some(1..) => Tone::Good,
            _ => Tone::Warn,
        };
        [
            self.resource.to_string(),
            count(self.replicas),
            count(self.ready),
            paint(tone, &because),
        ]
    }
}
