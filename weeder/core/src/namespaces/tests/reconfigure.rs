//! A config change is neither a start nor a recovery.

use super::*;

#[test]
fn new_limit_counts_the_deleted() {
    let mut seed = TestSeed::recovered(Some(1));
    for uid in ["1", "2", "3"] {
        seed.pod(uid, uid, &[ETCD]);
    }
    assert_eq!(seed.deleted(), ["1"]);
    seed.reconfigure(config(&["etcd", "api"], Some(2)));
    assert_eq!(seed.deleted(), ["2"]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
}

#[test]
fn new_duration_holds_later() {
    let mut seed = TestSeed::recovered(None);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    let shorter = Config {
        watch_duration: 60 * SECOND,
        ..Config::clone(&config(&["etcd", "api"], None))
    };
    seed.reconfigure(Arc::new(shorter));
    assert!(seed.events().is_empty());
    assert_eq!(seed.skip(), WATCH_DURATION);
    assert_eq!(seed.events(), [(ETCD, OVER)]);
    seed.slice("t", API, &["f"]);
    assert_eq!(seed.events(), [(API, OPENED)]);
    assert_eq!(seed.skip(), 60 * SECOND);
}

#[test]
fn other_services_keep_windows() {
    let mut seed = TestSeed::leading(Some(1));
    seed.slice("old/s", ETCD, &["e"]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
    seed.pass(WATCH_DURATION / 2);
    seed.slice("new/t", API, &["f"]);
    seed.pod("new/a", "1", &[API]);
    assert_eq!(seed.deleted(), ["1"]);
    seed.pass(WATCH_DURATION / 2);
    assert_eq!(seed.events(), [(API, OPENED), (ETCD, OVER)]);
    // The Services change their order, and a new one comes first.
    seed.reconfigure(config(&["other", "api", "etcd"], Some(1)));
    assert!(
        !seed.namespaces.observes(),
        "until all is listed under the new config"
    );
    seed.list_slices(&[
        ("old/s", slice(ETCD, &["e"])),
        ("new/t", slice(API, &["f"])),
    ]);
    seed.list_pods(&[
        ("new/b", candidate("2", "owner", &[API])),
        ("new/c", candidate("3", "another", &[API])),
        ("old/d", candidate("4", "d", &[ETCD])),
    ]);
    assert_eq!(
        seed.deleted(),
        ["3"],
        "in the window that was open, with what it had counted"
    );
    assert_eq!(seed.skip(), WATCH_DURATION / 2);
    assert_eq!(seed.events(), [(API, OVER)]);
}

#[test]
fn added_service_opens_once_ready() {
    let mut seed = TestSeed::leading(None);
    seed.reconfigure(config(&["etcd", "api", "one", "two"], None));
    // Once more, before anything was listed.
    seed.reconfigure(config(&["two", "one"], None));
    let (two, one) = ("two", "one");
    seed.list_pods(&[]);
    seed.list_slices(&[("s", slice(one, &["e"])), ("t", slice(two, &[]))]);
    assert!(seed.events().is_empty());
    seed.slice("t", two, &["f"]);
    assert_eq!(seed.events(), [(two, OPENED)]);
    seed.slice("s", one, &[]);
    seed.slice("s", one, &["e"]);
    assert_eq!(seed.events(), [(one, OPENED)]);
}

#[test]
fn recovery_during_a_reload_is_one() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", ETCD, &[]);
    seed.reconfigure(config(&["etcd"], None));
    seed.list_pods(&[]);
    seed.list_slices(&[("s", slice(ETCD, &["e"]))]);
    assert_eq!(seed.events(), [(ETCD, OPENED)]);
}

#[test]
fn dropped_service_drops_window() {
    let mut seed = TestSeed::leading(None);
    seed.slice("s", API, &["e"]);
    seed.pod("a", "1", &[API]);
    assert_eq!(seed.deletes(Outcome::Retry(None)), ["1"]);
    seed.reconfigure(config(&["etcd"], None));
    assert_eq!(
        seed.events(),
        [
            (API, OPENED),
            (API, WindowChange::Closed(CloseReason::Dropped))
        ]
    );
    assert_eq!(seed.namespaces.open_windows(), 0);
    seed.list_slices(&[]);
    seed.list_pods(&[]);
    assert!(seed.due().is_empty());
    assert!(seed.is_empty());
}

#[test]
fn new_config_waits_for_its_lists() {
    let mut seed = TestSeed::recovered(None);
    seed.reconfigure(config(&["etcd"], None));
    seed.pod("a", "1", &[ETCD]);
    assert!(seed.due().is_empty());
    seed.list_slices(&[("s", slice(ETCD, &["e"]))]);
    assert!(seed.due().is_empty());
    seed.list_pods(&[("a", candidate("1", "owner", &[ETCD]))]);
    assert_eq!(seed.deleted(), ["1"]);
}

#[test]
fn early_reload_is_a_start() {
    let mut seed = TestSeed::waiting(None);
    seed.lead();
    seed.reconfigure(config(&["etcd", "other"], None));
    seed.list_pods(&[]);
    seed.list_slices(&[("s", slice(ETCD, &["e"]))]);
    assert!(seed.events().is_empty());
    seed.skip();
    assert_eq!(seed.events(), [(ETCD, OPENED_AT_START)]);
}
