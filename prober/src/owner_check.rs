//! Checks the owner records of all shoots of the seed, probed or not, where the config wants it.
//! [`crate::owner_records::record`] decides what follows from an answer, and [`prober_core::shoot`]
//! what follows for the shoot.
//!
//! ```text
//! Clusters --> owner records: which check is due? --resolver--> answer --> standing --> the shoots' tasks, /ownership, what is shown
//! ```

mod resolver;

use futures::StreamExt;
use futures::future::OptionFuture;
use futures::stream::FuturesUnordered;
use http::StatusCode;
use prober_core::config::OwnerCheck;
use prober_core::span;
use tokio_util::sync::CancellationToken;

use self::resolver::Resolver;
use crate::owner_records::record::{Question, Standing};
use crate::owner_records::{Round, StandingChange};
use crate::seed::Seed;
use crate::shared::Shared;

/// Checks that may be under way at once. All of 3,840 shoots may then time out within an interval, both
/// as by default: a DNS that is silent of some shoots delays no check of others.
const IN_FLIGHT: usize = 256;

/// Checks for as long as the config wants it, until cancelled.
pub async fn run(shared: Shared, cancelled: CancellationToken) {
    let mut configs = shared.config.clone();
    let checks = async {
        loop {
            let check = configs.borrow_and_update().owner_check.clone();
            let clusters = shared.seed.clusters.all().into_iter();
            let owned = clusters.filter(|(_, cluster)| !cluster.is_self_hosted());
            let namespaces = owned.map(|(key, _)| key.name);
            shared
                .owners()
                .apply(check.as_ref(), namespaces, shared.clock.now());
            shared.seed.wakers.wake_all();
            let checking =
                OptionFuture::from(check.as_ref().map(|check| check_shoots(&shared, check)));
            tokio::select! {
                biased;
                Some(()) = checking => {}
                changed = configs.wait_for(|config| config.owner_check != check) => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
        }
    };
    cancelled.run_until_cancelled(checks).await;
}

/// Checks by one section of the config, for ever.
async fn check_shoots(shared: &Shared, check: &OwnerCheck) {
    tracing::info!(name = %check.name, value = %check.value, "owner records are checked");
    let (resolver, owners) = (Resolver::new(check, &shared.resources), shared.owners());
    let mut under_way = FuturesUnordered::new();
    loop {
        let Round { changes, due, next } =
            owners.next_round(shared.clock.now(), IN_FLIGHT - under_way.len());
        changes.iter().for_each(|change| report(shared, change));
        let checks = due.into_iter();
        under_way.extend(checks.map(|namespace| check_record(shared, check, &resolver, namespace)));
        tokio::select! {
            biased;
            Some(()) = under_way.next() => {}
            () = owners.added.notified() => {}
            () = shared.clock.reach(next) => {}
        }
    }
}

async fn check_record(shared: &Shared, check: &OwnerCheck, resolver: &Resolver, namespace: String) {
    // A Cluster that cannot be read any more keeps its last question.
    let (owners, clock) = (shared.owners(), shared.clock);
    let question =
        question(&shared.seed, check, &namespace).or_else(|| owners.question(&namespace));
    let sent = clock.now();
    let answer = resolver.ask(question.as_ref()).await;
    let result = answer.as_str();
    shared.metrics.owner_checks.inc([result]);
    tracing::debug!(namespace, result, "owner record checked");
    let chance = fastrand::f64();
    owners.answered(&namespace, question, answer, sent, clock.now(), chance);
    shared.seed.wakers.wake(&namespace);
}

fn question(seed: &Seed, check: &OwnerCheck, namespace: &str) -> Option<Question> {
    Question::of(check, &seed.clusters.get("", namespace)?.facts(namespace))
}

/// Reports a change of standing. A shoot that is ours from the beginning is no event.
fn report(shared: &Shared, change: &StandingChange) {
    let StandingChange {
        namespace,
        before,
        owner,
    } = change;
    let (why, category) = (owner.sentence(), owner.why.map(<&str>::from));
    let standing = owner.standing.into_str();
    match owner.standing {
        Standing::NotChecked => return,
        Standing::Ours if before.is_lost() => {
            tracing::info!(namespace, standing, why, "shoot is ours");
        }
        Standing::Ours => tracing::debug!(namespace, standing, why, "shoot is ours"),
        _ => tracing::warn!(
            namespace,
            standing,
            category,
            why,
            "shoot is not known to be ours"
        ),
    }
    let events = &shared.events;
    match owner.standing {
        Standing::Ours if before.is_lost() => {
            let message = format!("The shoot belongs to this seed again: {why}");
            events.normal(namespace, "OwnedAgain", &message);
        }
        Standing::Elsewhere => {
            let message = format!("The shoot belongs to another seed: {why}");
            events.warning(namespace, "OwnedElsewhere", &message);
        }
        Standing::Unresolved => {
            let message = format!("Nothing is written for the shoot: {why}");
            events.warning(namespace, "OwnerUnresolved", &message);
        }
        _ => {}
    }
}

/// Answers `/ownership/<namespace>`: is this seed known to own the shoot? A replica that has only
/// just begun says yes until it can know, so that its restart restarts nobody else.
pub fn ownership(shared: &Shared, namespace: &str) -> (StatusCode, String) {
    let (clusters, now) = (&shared.seed.clusters, shared.clock.now());
    let (status, text) = match &shared.config.borrow().owner_check {
        None => (
            StatusCode::NOT_FOUND,
            "owner records are not checked: the config has no ownerCheck".to_owned(),
        ),
        Some(check) if clusters.get("", namespace).is_some() => {
            let standing = shared.owners().standing(namespace, check, now);
            let owner = shared.owners().status(namespace, now);
            let why = owner.map_or_else(
                || "the first check is not over".to_owned(),
                |owner| owner.sentence(),
            );
            let status = if standing.is_lost() {
                StatusCode::SERVICE_UNAVAILABLE
            } else {
                StatusCode::OK
            };
            (status, format!("{}: {why}", standing.into_str()))
        }
        Some(_) if clusters.is_known() => (
            StatusCode::NOT_FOUND,
            "there is no Cluster of this name".to_owned(),
        ),
        Some(check) if now.elapsed_since_start() < span(check.tolerance) => (
            StatusCode::OK,
            "the seed's Clusters are not known yet".to_owned(),
        ),
        Some(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the seed's Clusters are not known".to_owned(),
        ),
    };
    (status, format!("{text}\n"))
}
