//! The words in which the core's tests speak: moments and probes in seconds, leases in known
//! states.

use chrono::{DateTime, TimeDelta, Utc};

use std::sync::Arc;
use std::time::Duration;

use crate::config::{Config, Dependent, ResourceRef, ScaleInfo};
use crate::lease::{Criteria, Grace, LeaseClocks, LeaseRecord, LeaseState, LeaseUid};
use crate::lifecycle::ShootSettings;
use crate::moment::{Moment, RequestTimes};
use crate::options::ResolvedOptions;
use crate::plan::ByDirection;
use crate::replicas::{DependentState, Observed};
use crate::shoot::{Environment, Owner};
use crate::verdict::{NodeRecord, NodeTraits};

/// Kubernetes' default before 1.32, with which a lease expires after 30 s.
pub const GRACE: Grace = Grace::new(TimeDelta::seconds(40));

/// Time that a leader has for a step before a standby takes it, at that grace (D-50).
pub const PATIENCE: f64 = 1.5;

/// Time at which [`book`]'s leases are in their states.
pub const JUDGED: f64 = 100.0;

/// A span of so many seconds, to the microsecond, as Kubernetes' own stamps.
pub fn span(seconds: f64) -> TimeDelta {
    TimeDelta::microseconds((seconds * 1e6).round() as i64)
}

/// The moment so many seconds after the process began.
pub fn at(seconds: f64) -> Moment {
    Moment::since_start(span(seconds))
}

/// Time of a clock that agrees with ours at that moment.
pub fn wall(seconds: f64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000, 0).expect("a calendar date") + span(seconds)
}

/// Criteria for leases at that moment while the API server answers and nothing is held down.
pub fn criteria(now: Moment) -> Criteria {
    Criteria {
        now,
        // Long before anything else.
        answering: Moment::since_start(TimeDelta::days(-1)),
        renewed_after: None,
        grace: GRACE,
    }
}

/// A probe that is answered at once.
pub fn times(seconds: f64) -> RequestTimes {
    RequestTimes {
        sent: at(seconds),
        received: at(seconds),
        wall: wall(seconds),
    }
}

/// A kubelet's lease with this stamp.
pub fn lease(name: &str, renewed: f64) -> LeaseRecord<'_> {
    LeaseRecord {
        name,
        uid: LeaseUid::default(),
        renew_time: Some(wall(renewed)),
        duration_seconds: Some(40),
    }
}

/// A candidate node, or one that a condition excludes.
pub fn node_record(name: &str, is_excluded: bool) -> NodeRecord {
    let condition = if is_excluded {
        "NetworkUnavailable=True"
    } else {
        ""
    };
    NodeRecord::new(name, NodeTraits::of(condition))
}

/// Leases that are in these states at [`JUDGED`].
pub fn book<'a>(leases: impl IntoIterator<Item = (&'a str, LeaseState)>) -> LeaseClocks {
    let leases: Vec<_> = leases.into_iter().collect();
    let mut book = LeaseClocks::default();
    for probe in [0.0, 10.0, JUDGED] {
        let renewed = |state| match state {
            LeaseState::Expired => Some(f64::min(probe, 10.0) - 0.5),
            LeaseState::Valid => Some(probe - 0.5),
            // It is seen for the first time.
            LeaseState::Undecided => (probe == JUDGED).then_some(0.0),
        };
        let shown = leases.iter();
        let shown = shown.filter_map(|(name, state)| Some(lease(name, renewed(*state)?)));
        book.observe(&times(probe), shown, GRACE);
    }
    book
}

/// A Deployment that is scaled without delay, with its levels on the way up and down.
pub fn dependent(name: &str, up: i32, down: i32) -> Dependent {
    let info = |level| ScaleInfo {
        level,
        initial_delay: Duration::ZERO,
        timeout: Duration::from_secs(30),
    };
    let resource = ResourceRef {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        name: name.into(),
    };
    Dependent {
        resource,
        optional: false,
        scale_up: info(up),
        scale_down: info(down),
    }
}

/// A resource that runs, as the API server first shows it.
pub fn running(replicas: i32) -> Observed {
    Observed {
        uid: "uid".into(),
        resource_version: "1".into(),
        replicas,
        ready: replicas,
        ..Observed::default()
    }
}

/// The shoot names other conditions for a pool that has no nodes.
pub fn change_settings(env: &mut Environment) {
    let pools = &mut Arc::make_mut(&mut env.settings).pool_conditions;
    if pools.remove("empty").is_none() {
        pools.insert("empty".into(), vec![]);
    }
}

/// The environment of a shoot whose replica leads and knows its seed; all dependents run.
/// Gardener's intervals.
pub fn env(dependents: impl IntoIterator<Item = Dependent>) -> Environment {
    let config = Config {
        kubeconfig_secret_name: "secret".into(),
        probe_interval: Duration::from_secs(30),
        initial_delay: Duration::from_secs(30),
        probe_timeout: Duration::from_secs(30),
        backoff_jitter_factor: 0.2,
        node_monitor_grace: Duration::from_secs(40),
        node_lease_failure_fraction: 0.6,
        scale_up_stabilization: Duration::ZERO,
        restore_only_held_down: false,
        standby_protects: true,
        owner_check: None,
        dependents: dependents.into_iter().collect(),
    };
    Environment {
        options: ResolvedOptions::resolve(&config, None, None),
        dependents: config
            .dependents
            .iter()
            .map(|_| DependentState::Present(Arc::new(running(1))))
            .collect(),
        config: Arc::new(config),
        settings: Arc::new(ShootSettings::default()),
        leads: true,
        dry_run: false,
        seed_since: ByDirection {
            up: Some(Moment::START),
            down: Some(Moment::START),
        },
        leader_silent_from: None,
        is_ours: true,
        paused: Some(false),
        owner: Owner::Here,
        machines: None,
        shoots: 100,
        chance: 0.5,
    }
}

/// The rows of a table: a line each, with cells between bars, but for comments.
pub fn table<const CELLS: usize>(
    text: &'static str,
) -> impl Iterator<Item = [&'static str; CELLS]> {
    let lines = text.lines().map(str::trim);
    let rows = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        cells.try_into().expect(row)
    })
}

pub fn number(text: &str) -> f64 {
    text.parse().expect(text)
}
