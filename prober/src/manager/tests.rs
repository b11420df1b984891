use std::cell::RefCell;
use std::io::{BufRead, BufReader, pipe};

use common::logging::{LevelFilter, layer};
use prober_core::lifecycle::StopReason;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::yield_now;
use tracing_subscriber::layer::SubscriberExt;

use super::*;
use crate::config;
use crate::gardener::Cluster;
use crate::tests::{CONFIG, shared};

const ZERO: Duration = Duration::ZERO;

#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_starts_again_and_harms_no_other() {
    // For how long it goes on each time before it panics, and how many seconds later it starts
    // again.
    let at_once = [1, 2, 4, 8, 16, 32, 60].map(|wait| (ZERO, wait));
    let runs = [&at_once[..], &[(CALM / 2, 60), (CALM, 1), (ZERO, 2)]].concat();
    let (panics, cancelled) = (Counter::default(), CancellationToken::new());
    let began = RefCell::new(Vec::new());
    let sick = || {
        began.borrow_mut().push(Instant::now());
        let run = runs.get(began.borrow().len() - 1);
        async move {
            let Some((calm, _)) = run else {
                return Vec::new();
            };
            sleep(*calm).await;
            panic!("on purpose")
        }
    };
    let well = || async {
        sleep(10 * CALM).await;
        Vec::new()
    };
    let start = Instant::now();
    let sick = restarted_on_panic(sick, &panics, &cancelled);
    tokio::join!(sick, restarted_on_panic(well, &panics, &cancelled));
    assert!(
        start.elapsed() >= 10 * CALM,
        "the other one goes on to its end"
    );
    for (times, (calm, wait)) in began.borrow().windows(2).zip(&runs) {
        let waited = (times[1] - times[0] - *calm).as_millis();
        // As much again is added at random.
        let waits = 1000 * wait..=2000 * wait + 10;
        assert!(waits.contains(&waited), "after {calm:?}: {waited} ms");
    }
    assert_eq!((began.borrow().len(), panics.get()), (11, 10));
    // One that waits after a panic ends at once.
    let (begin, sick) = (Instant::now(), || async { panic!("on purpose") });
    let sick = restarted_on_panic(sick, &panics, &cancelled);
    tokio::join!(sick, async { cancelled.cancel() });
    assert_eq!((panics.get(), begin.elapsed()), (11, ZERO));
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

const NAMESPACE: &str = "shoot--a--b";

fn manager(config: &str) -> Manager {
    Manager::new(shared(config), CancellationToken::new(), mpsc::channel(1).0)
}

impl Manager {
    /// Runs a probe in place of the shoot's: it takes so long to end, and holds this down then.
    fn run_in_place(&mut self, takes: Duration, held_down: &[&str]) {
        let cancel = CancellationToken::new();
        let cancelled = cancel.clone();
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
        let running = Running {
            uid: "uid".to_owned(),
            decree: None,
            cancel,
            task: AbortOnDropHandle::new(tokio::spawn(probe)),
        };
        self.probes.insert(NAMESPACE.to_owned(), running);
    }
}

#[tokio::test(start_paused = true)]
async fn a_successor_waits_for_the_end_of_the_removed_probe() {
    let mut manager = manager(CONFIG);
    let takes = Duration::from_secs(40);
    manager.run_in_place(takes, &[]);
    let began = Instant::now();
    // Its Cluster is gone; that of a successor is the next change.
    manager.follow(NAMESPACE).await;
    assert_eq!(began.elapsed(), takes);
    assert!(manager.probes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_an_ended_probe_holds_down_is_logged_and_counted() {
    let (logged, writer) = pipe().unwrap();
    let log = tracing_subscriber::registry().with(layer(LevelFilter::DEBUG, Arc::new(writer)));
    let log = tracing::subscriber::set_default(log);
    let mut manager = manager(CONFIG);
    for held_down in [&[][..], &["one", "two"]] {
        manager.run_in_place(ZERO, held_down);
        manager.follow(NAMESPACE).await;
    }
    drop(log);
    let lines: Vec<_> = BufReader::new(logged)
        .lines()
        .map_while(Result::ok)
        .collect();
    let read = lines
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told: Vec<_> = read
        .filter_map(|line| line.get("held_down").cloned())
        .collect();
    assert_eq!(told, ["Deployment/one, Deployment/two"], "{lines:?}");
    let metrics = &manager.shared.metrics;
    assert_eq!(metrics.probes_ended_while_held_down.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_successor_restores_is_not_counted() {
    let hibernated = ClusterState {
        lifecycle: Some(Lifecycle::Stop(StopReason::Hibernated)),
        ..Arc::into_inner(cluster()).unwrap()
    };
    for (uid, cluster, decree, counted) in [
        ("uid", cluster(), Ok(None), 0),
        ("uid", cluster(), GONE, 1),
        ("uid", Arc::new(hibernated), Ok(None), 1),
        ("another", cluster(), Ok(None), 0),
    ] {
        let mut manager = manager(CONFIG);
        manager.run_in_place(ZERO, &["one"]);
        let running = manager.probes.get_mut(NAMESPACE).unwrap();
        (running.uid, running.decree) = (uid.to_owned(), Some(Verdict::ScaleDown));
        manager.follow_cluster(NAMESPACE, &cluster, decree).await;
        let metrics = &manager.shared.metrics;
        assert_eq!(
            metrics.probes_ended_while_held_down.get(),
            counted,
            "{uid} {decree:?}"
        );
    }
}

const GONE: Result<Option<Verdict>, Standing> = Err(Standing::Elsewhere);

fn cluster() -> Arc<ClusterState> {
    let cluster = json!({
        "metadata": {"name": NAMESPACE, "uid": "uid"},
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
    let (mut manager, cluster) = (manager(CONFIG), cluster());
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
        let running = manager.probes.get(NAMESPACE).map(|running| running.decree);
        assert_eq!(running, decree.ok(), "{decree:?}");
        assert_eq!(task(&manager) != before, is_other, "{decree:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn flipping_owner_piles_up_no_tasks() {
    let (mut manager, cluster) = (manager(CONFIG), cluster());
    let takes = Duration::from_secs(5);
    for _ in 0..10 {
        manager.run_in_place(takes, &[]);
        let began = Instant::now();
        manager.follow_cluster(NAMESPACE, &cluster, GONE).await;
        assert_eq!(began.elapsed(), takes, "its end is awaited");
        manager.follow_cluster(NAMESPACE, &cluster, Ok(None)).await;
        while manager.shared.seed.wakers.count() == 0 {
            yield_now().await;
        }
        manager.follow_cluster(NAMESPACE, &cluster, GONE).await;
        assert_eq!(manager.shared.seed.wakers.count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn owner_checks_follow_config_and_clusters() {
    let check = |more: &str| {
        let check = format!("ownerCheck: {{name: o, value: here, {more}}}\n");
        Arc::new(config::parse(&(CONFIG.to_owned() + &check)).unwrap().config)
    };
    let (configs, config) = watch::channel(check("tolerance: 30s"));
    let shared = Shared {
        config,
        ..shared(CONFIG)
    };
    let (changed, mut changes) = mpsc::channel(1);
    let mut manager = Manager::new(shared, CancellationToken::new(), changed);
    manager.follow_config().await;
    assert_eq!(manager.check_owner(NAMESPACE, true), Ok(None));
    // No Cluster says what to ask for.
    let lost = Err(Standing::Unresolved);
    for (decree, limit) in [(Ok(None), 0), (lost, 60)] {
        let began = Instant::now();
        assert_eq!(changes.recv().await.unwrap().name, NAMESPACE);
        assert!(began.elapsed() <= Duration::from_secs(limit), "{decree:?}");
        assert_eq!(manager.check_owner(NAMESPACE, true), decree);
    }
    // What is known stays when the section changes.
    configs.send_replace(check("onLoss: passivate"));
    manager.follow_config().await;
    assert_eq!(manager.check_owner(NAMESPACE, true), lost);
    // Nothing is checked without a Cluster that has an owner, or a section.
    assert_eq!(manager.check_owner(NAMESPACE, false), Ok(None));
    assert!(manager.owner_checks.join_next().await.is_some());
    assert_eq!(manager.check_owner(NAMESPACE, true), Ok(None));
    configs.send_replace(Arc::new(config::parse(CONFIG).unwrap().config));
    manager.follow_config().await;
    assert_eq!(manager.check_owner(NAMESPACE, true), Ok(None));
    assert!(manager.owner_checks.is_empty());
}
