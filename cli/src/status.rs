//! `status`: every shoot of the seed.

use std::fmt::Write;

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use prober::owner_check::OwnerStatus;
use prober::read_only::ReadOnlyProber;
use prober::seed::ClusterState;
use prober::seed::watch_scope::WatchScope;
use prober_core::options::{ResolvedOptions, ShownOption, Source};
use prober_core::owner::Ownership;
use prober_core::replicas::DependentState;
use serde::Serialize;

use crate::explain::refused;
use crate::outages::{self, Outages};
use crate::output::{bad, good, plain, table, warn, with_causes};
use crate::{commands, output, seed, why};

/// The Leases of the two agents (rule 79).
pub(crate) const LEASES: [&str; 2] = ["dwd-prober-leader-election", "dwd-weeder-leader-election"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    leaders: Vec<Leader>,
    shoots: Vec<Row>,
    /// None when no prober is deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    outages: Option<Outages>,
    config_from: String,
    /// What annotations on `garden` set for all shoots.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    seed_settings: Vec<ShownOption>,
    /// Annotations on namespaces that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Leader {
    lease: &'static str,
    /// None when nobody leads, or the Lease cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) holder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renewed: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_duration_seconds: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    namespace: String,
    state: &'static str,
    /// Nodes that usable Machines back; none when the Machines cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    machines: Option<usize>,
    /// None when the namespaces cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
    /// What its owner record says, asked for from here; none where the config has no ownerCheck.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<OwnerStatus>,
    /// What annotations set, on the shoot's namespace or on `garden`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    settings: Vec<ShownOption>,
    held_down: Vec<String>,
    /// At 0 replicas without the watchdog's marker.
    at_zero: Vec<String>,
    ignored: Vec<String>,
    /// What could not be read, so that it may be held down or not.
    unknown: Vec<String>,
}

pub(crate) async fn run(access: commands::Access) -> anyhow::Result<()> {
    let seed = seed::read(&access, WatchScope::Unprobed).await?;
    let shoots = seed
        .prober
        .clusters()
        .into_iter()
        .map(|(namespace, cluster)| Row::of(namespace, &cluster, &seed.prober));
    let mut shoots: Vec<Row> = shoots.collect();
    let namespaces: Vec<_> = shoots.iter().map(|row| row.namespace.clone()).collect();
    let mut owners = seed.prober.owners(&namespaces).await;
    shoots
        .iter_mut()
        .for_each(|row| row.owner = owners.remove(&row.namespace));
    let leaders =
        join_all(LEASES.map(|lease| leader(&seed.client, &access.garden_namespace, lease))).await;
    let seed_settings = seed
        .prober
        .seed_options()
        .iter()
        .flat_map(ResolvedOptions::overruled)
        .collect();
    let refused = refused(&seed.prober, |_| true);
    let leader = leaders
        .first()
        .and_then(|leader: &Leader| leader.holder.as_deref());
    let outages = outages::read(&seed.client, &access.garden_namespace, leader, None).await;
    let answer = Answer {
        leaders,
        shoots,
        outages,
        config_from: seed.config_from,
        seed_settings,
        refused,
    };
    seed.prober.end().await;
    output::write(&answer, access.output, || text(&answer))
}

impl Row {
    fn of(namespace: String, cluster: &ClusterState, prober: &ReadOnlyProber) -> Self {
        let (mut held_down, mut at_zero, mut ignored, mut unknown) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (dependent, observed) in prober.dependents(&namespace) {
            let list = match &observed {
                DependentState::Absent => continue,
                DependentState::Unknown | DependentState::NoSuchKind => &mut unknown,
                DependentState::Present(observed) if observed.marks.ignored => &mut ignored,
                DependentState::Present(observed) if observed.marks.held_down => &mut held_down,
                DependentState::Present(observed) if observed.replicas == 0 => &mut at_zero,
                DependentState::Present(_) => continue,
            };
            list.push(dependent.resource.name.clone());
        }
        let (state, _) = why::state(cluster);
        let (machines, paused) = (prober.machines(&namespace), prober.paused(&namespace));
        let settings = prober
            .options(&namespace)
            .iter()
            .flat_map(ResolvedOptions::overruled)
            .collect();
        Self {
            namespace,
            state,
            machines,
            paused,
            owner: None,
            settings,
            held_down,
            at_zero,
            ignored,
            unknown,
        }
    }
}

pub(crate) async fn leader(client: &Client, namespace: &str, lease: &'static str) -> Leader {
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let (spec, problem) = match leases.get_opt(lease).await {
        Ok(lease) => (lease.and_then(|lease| lease.spec).unwrap_or_default(), None),
        Err(error) => (Default::default(), Some(with_causes(&error))),
    };
    Leader {
        lease,
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
        renewed: spec
            .renew_time
            .and_then(|time| DateTime::from_timestamp_micros(time.0.as_microsecond())),
        lease_duration_seconds: spec.lease_duration_seconds,
        problem,
    }
}

impl Leader {
    fn text(&self) -> String {
        if let Some(problem) = &self.problem {
            return warn(&format!("unknown: {problem}"));
        }
        match (&self.holder, self.renewed) {
            (Some(holder), Some(renewed)) => {
                let age = Utc::now() - renewed;
                let limit = TimeDelta::seconds(self.lease_duration_seconds.unwrap_or(15).into());
                let text = format!("{}, renewed {} s ago", plain(holder), age.num_seconds());
                if age > limit {
                    bad(&format!("{text}: it seems to be gone"))
                } else {
                    good(&text)
                }
            }
            (Some(holder), None) => plain(holder),
            (None, _) => bad("nobody"),
        }
    }
}

fn text(answer: &Answer) -> String {
    let mut text = String::new();
    for leader in &answer.leaders {
        let agent = if leader.lease.contains("prober") {
            "Prober"
        } else {
            "Weeder"
        };
        let _ = writeln!(text, "{agent} leads: {}", leader.text());
    }
    let _ = writeln!(text, "Config: {}", answer.config_from);
    if !answer.seed_settings.is_empty() {
        let shown: Vec<_> = answer
            .seed_settings
            .iter()
            .map(ToString::to_string)
            .collect();
        let _ = writeln!(text, "Settings: {}", warn(&shown.join(", ")));
    }
    for refused in &answer.refused {
        let _ = writeln!(text, "Refused: {}", warn(refused));
    }
    text.push('\n');
    if answer.shoots.is_empty() {
        text.push_str("No shoots found.\n");
    } else {
        let rows: Vec<_> = answer.shoots.iter().map(row).collect();
        text.push_str(&table(
            &["NAMESPACE", "STATE", "MACHINES", "HELD DOWN", "NOTE"],
            &rows,
        ));
    }
    if let Some(outages) = &answer.outages {
        let _ = write!(text, "\n{}", outages.text());
    }
    text
}

fn row(row: &Row) -> Vec<String> {
    let mut notes = Vec::new();
    if row.paused.is_none() {
        notes.push("paused or not: could not be read".to_owned());
    }
    if let Some(owner) = row
        .owner
        .as_ref()
        .filter(|owner| owner.standing != Ownership::Ours)
    {
        notes.push(format!("not known to be ours: {}", owner.sentence()));
    }
    for ShownOption {
        setting,
        value,
        from,
    } in &row.settings
    {
        match (*setting, value.as_str(), from) {
            ("pause", "true", from) => notes.push(format!("paused ({})", from.into_str())),
            // What `garden` sets for all stands above.
            (setting, value, Source::Namespace) => {
                notes.push(format!("{setting} {value} (namespace)"))
            }
            _ => {}
        }
    }
    let lists = [
        ("at 0, not by the watchdog", &row.at_zero),
        ("ignore-scaling", &row.ignored),
        ("could not be read", &row.unknown),
    ];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
    notes.extend(lists.map(|(what, names)| format!("{what}: {}", names.join(", "))));
    let held_down = match (row.held_down.is_empty(), row.unknown.is_empty()) {
        (false, _) => bad(&row.held_down.join(", ")),
        (true, true) => "-".to_owned(),
        (true, false) => "?".to_owned(),
    };
    let machines = row
        .machines
        .map_or_else(|| "?".to_owned(), |count| count.to_string());
    let notes = if notes.is_empty() {
        String::new()
    } else {
        warn(&notes.join("; "))
    };
    vec![
        row.namespace.clone(),
        row.state.to_owned(),
        machines,
        held_down,
        notes,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(paused: Option<bool>, settings: &[(&'static str, &str, Source)]) -> String {
        let shown = |&(setting, value, from): &(&'static str, &str, Source)| ShownOption {
            setting,
            value: value.into(),
            from,
        };
        let none = Vec::new;
        let shown = Row {
            namespace: "shoot--a--b".into(),
            state: "probed",
            machines: Some(3),
            paused,
            owner: None,
            settings: settings.iter().map(shown).collect(),
            held_down: none(),
            at_zero: none(),
            ignored: none(),
            unknown: none(),
        };
        anstream::adapter::strip_str(&row(&shown).concat()).to_string()
    }

    #[test]
    fn a_pause_that_is_not_known_is_not_shown_as_none() {
        assert_eq!(note(Some(false), &[]), "shoot--a--bprobed3-");
        assert_eq!(
            note(Some(true), &[("pause", "true", Source::Garden)]),
            "shoot--a--bprobed3-paused (garden)"
        );
        assert_eq!(
            note(None, &[]),
            "shoot--a--bprobed3-paused or not: could not be read"
        );
    }

    #[test]
    fn a_shoot_is_shown_with_what_its_own_namespace_sets() {
        let own = [
            ("pause", "false", Source::Namespace),
            ("standbyProtects", "true", Source::Garden),
        ];
        assert_eq!(
            note(Some(false), &own),
            "shoot--a--bprobed3-pause false (namespace)"
        );
    }
}
