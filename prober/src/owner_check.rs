//! Checks the owner records of all shoots of the seed, probed or not, where the config wants it.
//! What follows is decided by [`prober_core::owner`] and [`prober_core::shoot`].
//!
//! ```text
//! Clusters --> owner records: which check is due? --resolver--> answer --> standing --> the shoots' tasks, /ownership, what is shown
//! ```

mod resolver;

use std::collections::HashMap;
use std::sync::Arc;

use common::events::namespace_reference;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::StatusCode;
use prober_core::config::{Config, OwnerCheck};
use prober_core::moment::Moment;
use prober_core::owner::{OwnerRecord, Question, Standing};
use prober_core::span;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::resolver::Resolver;
pub use crate::owner_records::OwnerStatus;
use crate::owner_records::{Change, Turn};
use crate::seed::Seed;
use crate::shared::Shared;

/// So many checks are under way at once: at least, and at most.
const IN_FLIGHT: (usize, usize) = (32, 1024);

/// Checks for as long as the config wants it, until cancelled.
pub async fn run(shared: Shared, cancelled: CancellationToken) {
    let mut configs = shared.config.clone();
    let checks = async {
        loop {
            let config = Arc::clone(&configs.borrow_and_update());
            let check = config.owner_check.as_ref();
            let owned = shared
                .seed
                .clusters
                .all()
                .into_iter()
                .filter(|(_, cluster)| !cluster.is_self_hosted());
            let namespaces = owned.map(|(key, _)| key.name);
            shared.owners().begin(check, namespaces, shared.clock.now());
            shared.seed.wakers.wake_all();
            match check {
                Some(check) => follow(&shared, check, &mut configs).await,
                None => {
                    // Fails only when the process ends.
                    let Ok(()) = configs.changed().await else {
                        return;
                    };
                }
            }
        }
    };
    cancelled.run_until_cancelled(checks).await;
}

/// Checks until the config wants something else.
async fn follow(shared: &Shared, check: &OwnerCheck, configs: &mut watch::Receiver<Arc<Config>>) {
    tracing::info!(name = %check.name, value = %check.value, "owner records are checked");
    let (resolver, owners) = (Resolver::new(check), shared.owners());
    let mut under_way = FuturesUnordered::new();
    while configs.borrow().owner_check.as_ref() == Some(check) {
        let room = in_flight(owners.count(), check).saturating_sub(under_way.len());
        let Turn { changes, due, next } = owners.turn(shared.clock.now(), room);
        changes.iter().for_each(|change| report(shared, change));
        under_way.extend(
            due.into_iter()
                .map(|namespace| check_record(shared, check, &resolver, namespace)),
        );
        tokio::select! {
            Some(()) = under_way.next() => {}
            () = owners.added.notified() => {}
            Ok(()) = configs.changed() => {}
            () = shared.clock.reach(next) => {}
        }
    }
    // What the last answer changed is reported, although nothing follows from it any more.
    owners
        .turn(shared.clock.now(), 0)
        .changes
        .iter()
        .for_each(|change| report(shared, change));
    tracing::info!("owner records are not checked in this way any more");
}

/// Enough for all to time out within an interval, so that a DNS that is silent of some shoots
/// delays no check of others.
fn in_flight(shoots: usize, check: &OwnerCheck) -> usize {
    let round = shoots as f64 * check.timeout.as_secs_f64() / check.interval.as_secs_f64();
    (round.ceil() as usize).clamp(IN_FLIGHT.0, IN_FLIGHT.1)
}

async fn check_record(shared: &Shared, check: &OwnerCheck, resolver: &Resolver, namespace: String) {
    // Of a Cluster that cannot be read any more the same is asked for as before (D-13).
    let question =
        question(&shared.seed, check, &namespace).or_else(|| shared.owners().question(&namespace));
    let sent = shared.clock.now();
    let answer = resolver.ask(question.as_ref()).await;
    shared.metrics.owner_checked(answer.as_str());
    tracing::debug!(namespace, result = answer.as_str(), "owner record checked");
    shared.owners().answered(
        &namespace,
        question,
        answer,
        sent,
        shared.clock.now(),
        rand::random(),
    );
    shared.seed.wakers.wake(&namespace);
}

fn question(seed: &Seed, check: &OwnerCheck, namespace: &str) -> Option<Question> {
    Question::of(check, &seed.clusters.get("", namespace)?.facts(namespace))
}

/// One check of each of these shoots, for who asks on the command line.
pub async fn check_all(
    seed: &Seed,
    check: &OwnerCheck,
    namespaces: &[String],
) -> HashMap<String, OwnerStatus> {
    let checks = namespaces
        .iter()
        .map(async |namespace| (namespace.clone(), check_once(seed, check, namespace).await));
    futures::stream::iter(checks)
        .buffer_unordered(IN_FLIGHT.0)
        .collect()
        .await
}

/// One check by itself, for who asks on the command line; another one if it names another seed,
/// which one alone does not prove.
pub async fn check_once(seed: &Seed, check: &OwnerCheck, namespace: &str) -> OwnerStatus {
    let (question, resolver) = (question(seed, check, namespace), Resolver::new(check));
    let mut record = OwnerRecord::new(Moment::START);
    for _ in 0..2 {
        record.answered(
            resolver.ask(question.as_ref()).await,
            Moment::START,
            check,
            Moment::START,
            0.0,
        );
        if record.standing(check, Moment::START) != Standing::Doubted {
            break;
        }
    }
    OwnerStatus::new(
        record.standing(check, Moment::START),
        question.as_ref(),
        record.elsewhere(),
    )
}

/// Says how a standing has changed. That a shoot is ours from the beginning is no event.
fn report(
    shared: &Shared,
    Change {
        namespace,
        before,
        after,
        owner,
    }: &Change,
) {
    let (events, about) = (&shared.events, namespace_reference(namespace));
    let (why, category, standing) = (
        owner.sentence(),
        owner.why.map(<&str>::from),
        after.into_str(),
    );
    let warn = |what: &str| tracing::warn!(namespace, standing, category, why, "{what}");
    match after {
        Standing::Elsewhere { .. } => {
            warn("shoot belongs to another seed, nothing is written for it");
            events.warning(
                &about,
                "OwnedElsewhere",
                format!("The shoot belongs to another seed: {why}"),
            );
        }
        Standing::Unresolved(_) => {
            warn("owner record cannot be resolved, nothing is written for the shoot");
            events.warning(
                &about,
                "OwnerUnresolved",
                format!("Nothing is written for the shoot: {why}"),
            );
        }
        Standing::Unproven(_) => {
            warn("owner record cannot be resolved yet, nothing is restored meanwhile")
        }
        Standing::Doubted => {
            warn("owner record names another seed, nothing is written until it is checked again")
        }
        Standing::Ours if before.is_lost() => {
            tracing::info!(
                namespace,
                standing,
                why,
                "shoot is ours again, it is probed from now on"
            );
            events.normal(
                &about,
                "OwnedAgain",
                format!("The shoot belongs to this seed again: {why}"),
            );
        }
        Standing::Ours => tracing::debug!(namespace, standing, why, "shoot is ours"),
        Standing::NotChecked => {}
    }
}

/// What `/ownership/<namespace>` says: whether this seed is known to own the shoot. A replica that
/// has only just begun says yes until it can know, so that a restart of ours restarts nobody else.
pub fn ownership(shared: &Shared, namespace: &str) -> (StatusCode, String) {
    let (config, clusters, now) = (
        shared.config.borrow(),
        &shared.seed.clusters,
        shared.clock.now(),
    );
    let answer = |status, words: &str| (status, format!("{words}\n"));
    let Some(check) = &config.owner_check else {
        return answer(
            StatusCode::NOT_FOUND,
            "owner records are not checked: the config has no ownerCheck",
        );
    };
    if clusters.get("", namespace).is_none() {
        return match clusters.is_known() {
            true => answer(StatusCode::NOT_FOUND, "there is no Cluster of this name"),
            false if now.elapsed_since_start() < span(check.tolerance) => {
                answer(StatusCode::OK, "the seed's Clusters are not known yet")
            }
            false => answer(
                StatusCode::SERVICE_UNAVAILABLE,
                "the seed's Clusters are not known",
            ),
        };
    }
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
    answer(status, &format!("{}: {why}", standing.into_str()))
}
