//! The weeder as a process: what it serves, and how it meets a changed config file.

use std::collections::BTreeSet;
use std::time::Duration;

use api_server::{Fault, When};
use clap::Parser;
use common::flags::AgentArgs;
use tempfile::TempDir;
use testbed::control_plane::reserve_port;
use testbed::page::ScrapedMetrics;
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::log::{self, TOKEN};
use crate::seed::{ETCD, SLICES, WeederSeed, gardeners, owned_alone, pod, soon};

struct WeederProcess {
    task: JoinHandle<anyhow::Result<()>>,
    stop: CancellationToken,
    files: TempDir,
    _ports: [TcpSocket; 2],
    metrics: String,
    health: String,
}

impl WeederProcess {
    fn start(seed: &WeederSeed) -> Self {
        Self::start_with(seed, &[])
    }

    fn start_with(seed: &WeederSeed, flags: &[&str]) -> Self {
        let files = tempfile::tempdir().unwrap();
        let path = |name: &str| files.path().join(name);
        std::fs::write(path("config.yaml"), gardeners("")).unwrap();
        std::fs::write(path("kubeconfig"), seed.server.kubeconfig(TOKEN)).unwrap();
        let ports = [0, 0].map(|any| reserve_port(any).unwrap());
        let [metrics, health] = [&ports[0], &ports[1]].map(|port| port.local_addr().unwrap());
        let words = [
            "weeder".to_owned(),
            format!("--config-file={}", path("config.yaml").display()),
            format!("--kubeconfig={}", path("kubeconfig").display()),
            format!("--metrics-bind-addr={metrics}"),
            format!("--health-bind-addr={health}"),
            "--enable-leader-election=true".to_owned(),
            "--leader-election-namespace=garden".to_owned(),
        ];
        let words = words
            .iter()
            .map(String::as_str)
            .chain(flags.iter().copied());
        let args = AgentArgs::try_parse_from(words).expect("these flags exist");
        let stop = CancellationToken::new();
        let task = tokio::spawn(weeder::run(args, stop.clone()));
        Self {
            task,
            stop,
            files,
            _ports: ports,
            metrics: format!("http://{metrics}/metrics"),
            health: format!("http://{health}"),
        }
    }

    async fn get(&self, url: &str) -> (u16, String) {
        let answer = reqwest::get(url).await.unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        log::check(&text);
        (status, text)
    }

    /// Waits until a line is served at `/metrics`.
    async fn shows(&self, line: &str) {
        let shown = async {
            while !self
                .get(&self.metrics)
                .await
                .1
                .lines()
                .any(|found| found == line)
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        soon(line, shown).await;
    }

    async fn end(self) {
        self.stop.cancel();
        soon("the end of the process", self.task)
            .await
            .expect("no panic")
            .expect("no error");
    }
}

/// A process that leads and knows all.
async fn started() -> (WeederSeed, WeederProcess) {
    let seed = WeederSeed::start().await;
    let process = WeederProcess::start(&seed);
    seed.watched(1).await;
    process
        .shows(r#"leader_election_master_status{name="dwd-weeder-leader-election"} 1"#)
        .await;
    (seed, process)
}

#[tokio::test]
async fn metrics_health_and_readiness_are_served() {
    let (seed, process) = started().await;
    for (path, line) in [("healthz", "[+]weeding ok"), ("readyz", "[+]watches ok")] {
        let (status, body) = process.get(&format!("{}/{path}", process.health)).await;
        assert_eq!(status, 200, "{body}");
        assert!(body.contains(line), "{body}");
    }
    seed.apply(pod("a", "p", "apiserver"));
    seed.recover("a", ETCD);
    process
        .shows(r#"dwd_weeder_deletions_total{result="deleted"} 1"#)
        .await;
    process.shows("dwd_weeder_windows_open 1").await;
    process.end().await;
}

#[tokio::test]
async fn a_weeder_that_cannot_list_something_it_works_by_shows_that_it_is_blind() {
    for resource in ["pods", SLICES] {
        let seed = WeederSeed::start().await;
        let refused = seed
            .server
            .faults()
            .add(When::verb("list", resource), Fault::status(503));
        let process = WeederProcess::start(&seed);
        soon("a refused list", seed.server.faults().met(refused, 1)).await;
        process
            .shows(r#"leader_election_master_status{name="dwd-weeder-leader-election"} 1"#)
            .await;
        process.shows("dwd_seed_known 0").await;
        seed.server.faults().remove(refused);
        process.shows("dwd_seed_known 1").await;
        process.end().await;
    }
}

#[tokio::test]
async fn a_dry_run_says_what_it_would_delete_once_and_writes_nothing() {
    let seed = WeederSeed::start().await;
    let process = WeederProcess::start_with(&seed, &["--dry-run"]);
    seed.watched(1).await;
    seed.apply(pod("a", "p", "apiserver"));
    seed.recover("a", ETCD);
    process
        .shows(r#"dwd_weeder_deletions_total{result="dry_run"} 1"#)
        .await;
    // Each further pod is one more: nothing is said of those before.
    for (name, line) in [
        ("q", r#"dwd_weeder_deletions_total{result="dry_run"} 2"#),
        ("r", r#"dwd_weeder_deletions_total{result="dry_run"} 3"#),
    ] {
        seed.apply(owned_alone(pod("a", name, "apiserver")));
        process.shows(line).await;
    }
    assert_eq!(
        seed.server.requests().count(|record| record.is_write()),
        0,
        "no DELETE, no Lease, no Event"
    );
    process.end().await;
}

#[tokio::test]
async fn every_metric_of_the_weeder_is_documented_and_served() {
    let (_seed, process) = started().await;
    let (_, text) = process.get(&process.metrics).await;
    let served = ScrapedMetrics::read(&text).unwrap();
    let shown: BTreeSet<&str> = served.types.keys().map(String::as_str).collect();
    let document = include_str!("../../../docs/metrics.md");
    let section = |title: &str| {
        document
            .split("\n## ")
            .find(|section| section.starts_with(title))
            .unwrap()
    };
    let rows = section("Weeder")
        .lines()
        .chain(section("Both agents").lines());
    let documented: BTreeSet<&str> = rows
        .filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next())
        .collect();
    assert_eq!(shown, documented);
    process.end().await;
}

#[tokio::test]
async fn a_config_file_that_says_the_same_in_other_words_changes_nothing() {
    let (seed, process) = started().await;
    seed.recover("a", ETCD);
    process.shows("dwd_weeder_windows_open 1").await;
    std::fs::write(
        process.files.path().join("config.yaml"),
        gardeners("# a comment"),
    )
    .unwrap();
    process
        .shows(r#"dwd_config_reloads_total{result="taken"} 1"#)
        .await;
    seed.settle().await;
    process
        .shows(r#"dwd_weeder_windows_opened_total{reason="start"} 0"#)
        .await;
    process
        .shows(r#"dwd_weeder_windows_opened_total{reason="recovery"} 2"#)
        .await;
    assert_eq!(
        seed.server.requests().count(|record| record.verb == "list"),
        2
    );
    process.end().await;
}
