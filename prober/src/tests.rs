//! Fixtures for the tests of several modules.

use std::io::{PipeReader, pipe};
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};

use chrono::{DateTime, TimeDelta, Utc};
use common::events::Events;
use common::leader_election::Election;
use common::logging::{LevelFilter, layer};
use common::metrics::Registry;
use parking_lot::Mutex;
use prober_core::judgement::{Finding, Judge, Rules};
use prober_core::lease::Grace;
use prober_core::moment::Moment;
use prober_core::options::ResolvedOptions;
use prober_core::plan::ByDirection;
use prober_core::shoot::{Environment, Owner, Start};
use prober_core::verdict::{PoolConditions, Verdict};
use tokio_util::sync::CancellationToken;
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};
use tracing_subscriber::layer::SubscriberExt;

use crate::clock::Clock;
use crate::config;
use crate::observability::metrics::Metrics;
use crate::observability::shoot_statuses::ShootStatuses;
use crate::seed::{ClusterState, Seed};
use crate::shared::Shared;
use crate::shoot_client::resources::Resources;
use crate::suspend_detector::SuspendDetector;
use crate::task::Assignment;
use crate::write::Permits;

/// A config of one dependent.
pub(crate) const CONFIG: &str = "\
kubeConfigSecretName: s
dependentResourceInfos:
- ref: {kind: Deployment, name: d, apiVersion: apps/v1}
  scaleUp: {}
  scaleDown: {}
";

/// Lets each line of the log be asked for where it is written. With a single subscriber tracing
/// would ask whichever thread comes first, once for all: that of a test without a log.
static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// What this thread logs until the guard is dropped.
pub(crate) fn log() -> (PipeReader, DefaultGuard) {
    LazyLock::force(&ANOTHER);
    let (logged, writer) = pipe().expect("a pipe");
    let layer = layer(LevelFilter::INFO, Arc::new(writer));
    let guard = set_default(tracing_subscriber::registry().with(layer));
    (logged, guard)
}

pub(crate) const NAMESPACE: &str = "shoot--a--b";

/// A shoot that is to be probed, or treated as decreed.
pub(crate) fn assignment(cluster: Arc<ClusterState>, decree: Option<Verdict>) -> Arc<Assignment> {
    Arc::new(Assignment {
        namespace: NAMESPACE.to_owned(),
        cluster,
        start: Start::default(),
        decree,
        cancel: CancellationToken::new(),
        confirmed: Mutex::default(),
    })
}

/// A seed that nobody can reach.
pub(crate) fn seed() -> Arc<Seed> {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let nowhere = kube::Config::new("https://127.0.0.1:1".parse().expect("a URL"));
    let client = kube::Client::try_from(nowhere).expect("a client");
    Arc::new(Seed::new(client))
}

/// What a shoot of a leader decides by that knows nothing of its dependents.
pub(crate) fn env(config: &str) -> Environment {
    let config = config::parse(config).expect("a config").config;
    Environment {
        options: ResolvedOptions::resolve(&config, None, None),
        config: Arc::new(config),
        settings: Arc::default(),
        leads: true,
        dry_run: false,
        seed_since: ByDirection::default(),
        leader_silent_from: None,
        is_ours: true,
        owner: Owner::Here,
        paused: Some(false),
        dependents: Vec::new(),
        machines: None,
        shoots: 1,
        chance: 0.5,
    }
}

/// What the tasks of such a seed's shoots share, with this config.
pub(crate) fn shared(config: &str) -> Shared {
    let clock = Clock::start(Utc::now());
    let config = Arc::new(config::parse(config).expect("a config").config);
    Shared {
        clock,
        resources: Arc::new(Resources::of_system()),
        seed: seed(),
        config: tokio::sync::watch::channel(config).1,
        permits: Arc::new(Permits::new(1.0, NonZeroU32::MIN)),
        suspend_detector: SuspendDetector::new(clock, Utc::now),
        metrics: Metrics::register(&mut Registry::default()),
        statuses: ShootStatuses::new(clock),
        events: Events::none(),
        election: Election::Alone,
        shutdown: CancellationToken::new(),
    }
}

fn span(seconds: f64) -> TimeDelta {
    TimeDelta::microseconds((seconds * 1e6).round() as i64)
}

/// The moment so many seconds after the process began.
pub(crate) fn at(seconds: f64) -> Moment {
    Moment::since_start(span(seconds))
}

/// How many seconds after that a moment is.
pub(crate) fn second(moment: Moment) -> f64 {
    moment.elapsed_since_start().num_milliseconds() as f64 / 1000.0
}

/// What a clock that agrees with ours says at that moment: midnight at 0.
pub(crate) fn wall(seconds: f64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + span(seconds)
}

/// What is found where nothing was seen.
pub(crate) fn nothing_found() -> Finding {
    let rules = Rules {
        grace: Grace::new(TimeDelta::seconds(40)),
        fraction: 0.6,
        pool_conditions: &PoolConditions::default(),
        renewed_after: None,
        down_since: None,
        nodes_good_for: TimeDelta::zero(),
    };
    Judge::default().judge(&rules)
}
