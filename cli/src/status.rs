//! `status`: every shoot of the seed.

use prober::read_only::ReadOnlyProber;
use prober::{Ownership, ShownOption, Tone, WatchScope, list};
use prober_core::options::{ResolvedOptions, Source};
use prober_core::replicas::DependentState;
use serde::Serialize;

use crate::commands::SeedArgs;
use crate::leader::{self, LeaseHolder};
use crate::outages::{self, ObservedOutages};
use crate::output::{self, paint, table};
use crate::seed::{SeedReader, ShootSummary};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SeedStatus {
    /// The prober's and the weeder's.
    leaders: [LeaseHolder; 2],
    shoots: Vec<ShootRow>,
    /// None when no prober is deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    outages: Option<ObservedOutages>,
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
struct ShootRow {
    #[serde(flatten)]
    shoot: ShootSummary,
    /// What annotations set, on the shoot's namespace or on `garden`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    settings: Vec<ShownOption>,
    #[serde(flatten)]
    dependents: DependentNames,
}

/// The names of dependents by their state; those that run are left out.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct DependentNames {
    held_down: Vec<String>,
    /// At 0 replicas without the watchdog's marker.
    at_zero: Vec<String>,
    ignored: Vec<String>,
    /// What could not be read, so that it may be held down or not.
    unknown: Vec<String>,
}

pub(crate) async fn run(args: SeedArgs) -> anyhow::Result<()> {
    let seed = SeedReader::open(&args, WatchScope::Unprobed).await?;
    let (prober, garden) = (&seed.prober, &args.garden_namespace);
    let clusters = prober.clusters();
    let namespaces: Vec<_> = clusters.iter().map(|(name, _)| name.clone()).collect();
    let mut owners = prober.owners(&namespaces).await;
    let shoots = clusters.into_iter().map(|(namespace, cluster)| {
        let owner = owners.remove(&namespace);
        ShootRow::new(seed.summary(namespace, &cluster, owner), prober)
    });
    let shoots = shoots.collect();
    let read = |lease| leader::read(&seed.client, garden, lease);
    let (leader, weeders) = futures::join!(read(leader::PROBER), read(leader::WEEDER));
    let answer = SeedStatus {
        outages: outages::read(&seed.client, garden, leader.holder.as_deref(), None).await,
        leaders: [leader, weeders],
        shoots,
        seed_settings: overruled(prober.seed_options()),
        refused: seed.refused(|_| true),
        config_from: seed.config_from,
    };
    seed.prober.end().await;
    output::write(&answer, args.output, || answer.text())
}

fn overruled(options: Option<ResolvedOptions>) -> Vec<ShownOption> {
    options.iter().flat_map(ShownOption::overruled).collect()
}

impl ShootRow {
    fn new(shoot: ShootSummary, prober: &ReadOnlyProber) -> Self {
        let mut dependents = DependentNames::default();
        for (dependent, state) in prober.dependents(&shoot.namespace) {
            let names = match &state {
                DependentState::Absent => continue,
                DependentState::Unknown | DependentState::NoSuchKind => &mut dependents.unknown,
                DependentState::Present(observed) if observed.marks.ignored => {
                    &mut dependents.ignored
                }
                DependentState::Present(observed) if observed.marks.held_down => {
                    &mut dependents.held_down
                }
                DependentState::Present(observed) if observed.replicas == 0 => {
                    &mut dependents.at_zero
                }
                DependentState::Present(_) => continue,
            };
            names.push(dependent.resource.name.clone());
        }
        Self {
            settings: overruled(prober.options(&shoot.namespace)),
            shoot,
            dependents,
        }
    }

    fn cells(&self) -> [String; 5] {
        let DependentNames {
            held_down, unknown, ..
        } = &self.dependents;
        let held_down = match (held_down.is_empty(), unknown.is_empty()) {
            (false, _) => paint(Tone::Bad, &held_down.join(", ")),
            (true, true) => "-".to_owned(),
            (true, false) => "?".to_owned(),
        };
        let machines = self.shoot.machines.map(|count| count.to_string());
        [
            self.shoot.namespace.clone(),
            <&str>::from(&self.shoot.state).to_owned(),
            machines.unwrap_or_else(|| "?".to_owned()),
            held_down,
            paint(Tone::Warn, &self.notes().join("; ")),
        ]
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.shoot.paused.is_none() {
            notes.push("paused or not: could not be read".to_owned());
        }
        if let Some(owner) = self
            .shoot
            .owner
            .as_ref()
            .filter(|owner| owner.standing != Ownership::Ours)
        {
            notes.push(format!("not known to be ours: {}", owner.sentence()));
        }
        for option in &self.settings {
            match (option.setting, option.value.as_str(), option.from) {
                ("pause", "true", from) => notes.push(format!("paused ({})", from.into_str())),
                // What `garden` sets for all stands above.
                (_, _, Source::Namespace) => notes.push(option.to_string()),
                _ => {}
            }
        }
        for (what, names) in [
            ("at 0, not by the watchdog", &self.dependents.at_zero),
            ("ignore-scaling", &self.dependents.ignored),
            ("could not be read", &self.dependents.unknown),
        ] {
            if !names.is_empty() {
                notes.push(format!("{what}: {}", names.join(", ")));
            }
        }
        notes
    }
}

impl SeedStatus {
    fn text(&self) -> String {
        let [prober, weeder] = self.leaders.each_ref().map(LeaseHolder::text);
        let mut lines = vec![
            format!("Prober leads: {prober}"),
            format!("Weeder leads: {weeder}"),
            format!("Config: {}", self.config_from),
        ];
        if !self.seed_settings.is_empty() {
            let settings = list(&self.seed_settings);
            lines.push(format!("Settings: {}", paint(Tone::Warn, &settings)));
        }
        let refused = self.refused.iter();
        lines.extend(refused.map(|refused| format!("Refused: {}", paint(Tone::Warn, refused))));
        let shoots = if self.shoots.is_empty() {
            "No shoots found.\n".to_owned()
        } else {
            let rows = self.shoots.iter().map(ShootRow::cells);
            table(
                ["NAMESPACE", "STATE", "MACHINES", "HELD DOWN", "NOTE"],
                rows.collect(),
            )
        };
        let mut text = format!("{}\n\n{shoots}", lines.join("\n"));
        if let Some(outages) = &self.outages {
            text.push_str(&format!("\n{}", outages.text()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use prober::ShootState;

    use super::*;

    fn note(paused: Option<bool>, settings: &[(&'static str, &str, Source)]) -> String {
        let shown = |&(setting, value, from): &(&'static str, &str, Source)| ShownOption {
            setting,
            value: value.into(),
            from,
        };
        let row = ShootRow {
            shoot: ShootSummary {
                namespace: "shoot--a--b".into(),
                state: ShootState::Probed,
                machines: Some(3),
                paused,
                owner: None,
            },
            settings: settings.iter().map(shown).collect(),
            dependents: DependentNames::default(),
        };
        anstream::adapter::strip_str(&row.cells().concat()).to_string()
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
