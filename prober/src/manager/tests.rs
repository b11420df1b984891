use std::cell::RefCell;
use std::io::read_to_string;

use prober_core::lifecycle::StopReason;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use super::*;
use crate::config;
use crate::gardener::Cluster;
use crate::tests::{CONFIG, NAMESPACE, assignment, log, shared};

const ZERO: Duration = Duration::ZERO;

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_starts_again_and_harms_no_other() {
    // How many seconds later it starts again each time.
    let waits = [1, 2, 4, 8, 16, 32, 60, 60];
    let (panics, cancelled) = (Counter::default(), CancellationToken::new());
    let began = RefCell::new(Vec::new());
    let sick = || {
        began.borrow_mut().push(Instant::now());
        let is_cured = began.borrow().len() > waits.len();
        async move {
            assert!(is_cured, "on purpose");
            Vec::new()
        }
    };
    let well = || async {
        sleep(Duration::from_secs(3600)).await;
        Vec::new()
    };
    let start = Instant::now();
    let sick = restarted_on_panic(sick, &panics, &cancelled);
    tokio::join!(sick, restarted_on_panic(well, &panics, &cancelled));
    assert_eq!(start.elapsed().as_secs(), 3600, "the other one goes on");
    for (times, wait) in began.borrow().windows(2).zip(waits) {
        let waited = (times[1] - times[0]).as_millis();
        // As much again is added at random.
        let expected = 1000 * wait..=2000 * wait + 10;
        assert!(expected.contains(&waited), "{wait} s: {waited} ms");
    }
    assert_eq!((began.borrow().len(), panics.get()), (9, 8));
    // One that waits after a panic ends at once.
    let (begin, sick) = (Instant::now(), || async { panic!("on purpose") });
    let sick = restarted_on_panic(sick, &panics, &cancelled);
    tokio::join!(sick, async { cancelled.cancel() });
    assert_eq!((panics.get(), begin.elapsed()), (9, ZERO));
}

#[tokio::test(start_paused = true)]
async fn new_replica_says_ours_while_tolerated() {
    let answers = |config: &str| {
        let shared = shared(config);
        move || owner::ownership(&shared, NAMESPACE).0.as_u16()
    };
    assert_eq!(answers(CONFIG)(), 404);
    let checked = answers(&format!(
        "{CONFIG}ownerCheck: {{name: o, value: v, tolerance: 5m}}\n"
    ));
    for (after, status) in [(0, 200), (299, 200), (1, 503)] {
        tokio::time::advance(Duration::from_secs(after)).await;
        assert_eq!(checked(), status);
    }
}

fn manager(config: &str) -> Manager {
    Manager::new(shared(config))
}

impl Manager {
    /// Runs a probe in place of the shoot's: it takes so long to end, and holds this down then.
    fn run_in_place(&mut self, decree: Option<Verdict>, takes: Duration, held_down: &[&str]) {
        let shoot = assignment(cluster("uid"), decree);
        let cancelled = shoot.cancel.clone();
        let held_down = held_down.iter().map(|name| ResourceRef {
            kind: "Deployment".to_owned(),
            name: (*name).to_owned(),
            ..ResourceRef::default()
        });
        let held_down = held_down.collect();
        let probe = async move {
            cancelled.cancelled().await;
            sleep(takes).await;
            held_down
        };
        let task = AbortOnDropHandle::new(tokio::spawn(probe));
        let running = Running { shoot, task };
        self.probes.insert(NAMESPACE.to_owned(), running);
    }
}

#[tokio::test(start_paused = true)]
async fn a_successor_waits_for_the_end_of_the_removed_probe() {
    let mut manager = manager(CONFIG);
    let takes = Duration::from_secs(40);
    manager.run_in_place(None, takes, &[]);
    let began = Instant::now();
    // Its Cluster is gone; that of a successor is the next change.
    manager.follow(NAMESPACE).await;
    assert_eq!(began.elapsed(), takes);
    assert!(manager.probes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_an_ended_probe_holds_down_is_logged_and_counted() {
    let (logged, log) = log();
    let mut manager = manager(CONFIG);
    for held_down in [&[][..], &["one", "two"]] {
        manager.run_in_place(None, ZERO, held_down);
        manager.follow(NAMESPACE).await;
    }
    drop(log);
    let log = read_to_string(logged).unwrap();
    let told = r#""held_down":"Deployment/one, Deployment/two""#;
    assert_eq!(log.matches(r#""held_down""#).count(), 1, "{log}");
    assert!(log.contains(told), "{log}");
    let metrics = &manager.shared.metrics;
    assert_eq!(metrics.probes_ended_while_held_down.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_successor_restores_is_not_counted() {
    let hibernated = ClusterState {
        lifecycle: Some(Lifecycle::Stop(StopReason::Hibernated)),
        ..Arc::into_inner(cluster("uid")).unwrap()
    };
    for (cluster, decree, counted) in [
        (cluster("uid"), Ok(None), 0),
        (cluster("uid"), GONE, 1),
        (Arc::new(hibernated), Ok(None), 1),
        (cluster("another"), Ok(None), 0),
    ] {
        let mut manager = manager(CONFIG);
        manager.run_in_place(Some(Verdict::ScaleDown), ZERO, &["one"]);
        manager.follow_cluster(NAMESPACE, &cluster, decree).await;
        let ended = &manager.shared.metrics.probes_ended_while_held_down;
        assert_eq!(ended.get(), counted, "{} {decree:?}", cluster.uid);
    }
}

const GONE: Result<Option<Verdict>, Standing> = Err(Standing::Elsewhere);

fn cluster(uid: &str) -> Arc<ClusterState> {
    let cluster = json!({
        "metadata": {"name": NAMESPACE, "uid": uid},
        "spec": {"seed": {}, "cloudProfile": {}, "shoot": {
            "spec": {"provider": {"workers": [{"name": "a", "minimum": 1, "maximum": 1}]}},
            "status": {"lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100}},
        }},
    });
    let cluster: Cluster = serde_json::from_str(&cluster.to_string()).unwrap();
    Arc::new(cluster.into())
}

#[tokio::test(start_paused = true)]
async fn owner_elsewhere_ends_the_task() {
    let (mut manager, cluster) = (manager(CONFIG), cluster("uid"));
    let passivates = Ok(Some(Verdict::ScaleDown));
    for (decree, is_other) in [
        (Ok(None), true),
        (Ok(None), false),
        (GONE, true),
        (GONE, false),
        (Err(Standing::Unresolved), false),
        (passivates, true),
        (passivates, false),
        (Ok(None), true),
        (passivates, true),
        (Err(Standing::Unresolved), true),
        (Ok(None), true),
    ] {
        let task = |manager: &Manager| {
            let running = manager.probes.get(NAMESPACE)?;
            Some(running.task.abort_handle().id())
        };
        let before = task(&manager);
        manager.follow_cluster(NAMESPACE, &cluster, decree).await;
        let running = manager.probes.get(NAMESPACE);
        let running = running.map(|running| running.shoot.decree);
        assert_eq!(running, decree.ok(), "{decree:?}");
        assert_eq!(task(&manager) != before, is_other, "{decree:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn owner_checks_follow_config_and_clusters() {
    let check = "ownerCheck: {name: o, value: here, tolerance: 30s}\n";
    let parse = |text: &str| Arc::new(config::parse(text).unwrap().config);
    let (configs, config) = watch::channel(parse(&(CONFIG.to_owned() + check)));
    let mut manager = manager(CONFIG);
    manager.shared.config = config;
    let statuses = manager.shared.statuses.clone();
    statuses.set_cluster(NAMESPACE, Some(&cluster("uid")));
    manager.follow_config().await;
    assert_eq!(manager.check_owner(NAMESPACE, true), Ok(None));
    // No Cluster says what to ask for.
    let lost = Err(Standing::Unresolved);
    for (decree, limit) in [(Ok(None), 0), (lost, 60)] {
        let began = Instant::now();
        manager.owner_checks.join_next().await.unwrap().1.unwrap();
        assert!(began.elapsed() <= Duration::from_secs(limit), "{decree:?}");
        assert_eq!(manager.check_owner(NAMESPACE, true), decree);
    }
    // Nothing is checked without a Cluster that has an owner, or a section.
    assert_eq!(manager.check_owner(NAMESPACE, false), Ok(None));
    assert!(manager.owner_checks.join_next().await.is_some());
    assert_eq!(manager.check_owner(NAMESPACE, true), Ok(None));
    configs.send_replace(parse(CONFIG));
    manager.follow_config().await;
    assert_eq!(manager.check_owner(NAMESPACE, true), Ok(None));
    assert!(manager.owner_checks.is_empty());
}
