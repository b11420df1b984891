use std::cell::RefCell;
use std::io::{BufRead, BufReader, pipe};

use common::logging::{LevelFilter, layer};
use serde_json::Value;
use tracing_subscriber::layer::SubscriberExt;

use super::*;
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
async fn a_replica_that_does_not_know_its_shoots_yet_says_that_they_are_ours_for_as_long_as_is_tolerated()
 {
    let answers = |config: &str| {
        let manager = Manager::new(shared(config), CancellationToken::new());
        move || {
            crate::owner_check::ownership(&manager.shared, NAMESPACE)
                .0
                .as_u16()
        }
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
            cancel,
            task: AbortOnDropHandle::new(tokio::spawn(probe)),
        };
        self.probes.insert(NAMESPACE.to_owned(), running);
    }
}

#[tokio::test(start_paused = true)]
async fn a_successor_waits_for_the_end_of_the_removed_probe() {
    let mut manager = Manager::new(shared(CONFIG), CancellationToken::new());
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
    let mut manager = Manager::new(shared(CONFIG), CancellationToken::new());
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
