//! A config change is neither a start nor a recovery.

use super::*;

#[test]
fn new_limit_counts_the_deleted() {
    let mut seed = recovered_with(Some(1));
    seed.crashes("1").crashes("2").crashes("3").deletes("1");
    seed.reconfigures(&[ETCD, API], Some(2)).deletes("2");
    seed.windows("etcd recovery");
}

#[test]
fn new_duration_holds_later() {
    let mut seed = recovered();
    let mut shorter = Config::clone(&config(&[ETCD, API], None));
    shorter.watch_duration = Duration::from_secs(60);
    seed.namespaces.reconfigure(Arc::new(shorter), seed.now);
    seed.windows("etcd recovery")
        .waits(WATCH)
        .windows("etcd over");
    seed.ready(API).windows("api recovery").waits(60.0);
}

#[test]
fn other_services_keep_windows() {
    let mut seed = leading_with(Some(1));
    seed.ready("old/etcd")
        .windows("etcd recovery")
        .pass(WATCH / 2.0);
    seed.ready("new/api")
        .shows(pod("new/a=1").on(&[API]))
        .deletes("1");
    seed.pass(WATCH / 2.0).windows("api recovery, etcd over");
    // The Services change their order, and a new one comes first.
    seed.reconfigures(&["other", API, ETCD], Some(1));
    let another = pod("new/c=3").on(&[API]).alone();
    seed.shows(another.clone()).deletes("");
    seed.lists_slices(&[("old/etcd", "e"), ("new/api", "e")])
        .deletes("");
    // The limit of the open window has been reached.
    seed.lists_pods([pod("new/b=2").on(&[API]), another, pod("old/4")]);
    seed.deletes("3");
    seed.waits(WATCH / 2.0).windows("api over");
}

#[test]
fn added_service_opens_once_ready() {
    let mut seed = leading();
    seed.reconfigures(&[ETCD, API, "one", "two"], None);
    // Once more, before anything was listed.
    seed.reconfigures(&["two", "one"], None).lists_pods([]);
    seed.lists_slices(&[("one", "e"), ("two", "")]).windows("");
    seed.ready("two").windows("two recovery");
    seed.unready("one").ready("one").windows("one recovery");
}

#[test]
fn recovery_during_a_reload_is_one() {
    let mut seed = leading();
    seed.unready(ETCD)
        .reconfigures(&[ETCD], None)
        .lists_pods([]);
    seed.lists_slices(&[(ETCD, "e")]).windows("etcd recovery");
}

#[test]
fn dropped_service_drops_window() {
    let mut seed = leading();
    seed.ready(API).shows(pod("1").on(&[API]));
    seed.tries("1", Outcome::Retry(None))
        .reconfigures(&[ETCD], None);
    seed.windows("api recovery, api dropped");
    seed.lists_slices(&[]).lists_pods([]).is_empty();
}

#[test]
fn early_reload_is_a_start() {
    let mut seed = waiting(None);
    seed.leads()
        .reconfigures(&[ETCD, "other"], None)
        .lists_pods([]);
    seed.lists_slices(&[(ETCD, "e")]).waits_for_its_turn();
    seed.windows("etcd start");
}
