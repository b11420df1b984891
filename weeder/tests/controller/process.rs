//! The weeder as a process: what it serves, and how it meets a changed config file.

use std::collections::BTreeSet;
use std::time::Duration;

use api_server::{Fault, Rule, When};
use clap::Parser;
use common::flags::AgentArgs;
use tempfile::TempDir;
use testbed::control_plane::reserve_port;
use testbed::gardener;
use testbed::page::ScrapedMetrics;
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::log::{self, TOKEN};
use crate::seed::{ETCD, SLICES, WeederSeed, gardeners, soon, until};

struct WeederProcess {
    task: JoinHandle<anyhow::Result<()>>,
    stop: CancellationToken,
    files: TempDir,
    ports: [TcpSocket; 2],
}

impl WeederProcess {
    fn start(seed: &WeederSeed, flags: &[&str]) -> Self {
        let files = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = files.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let ports = [0, 0].map(|any| reserve_port(any).unwrap());
        let [metrics, health] = ports.each_ref().map(|port| port.local_addr().unwrap());
        let words = [
            "weeder",
            &format!("--config-file={}", write("config.yaml", gardeners())),
            &format!(
                "--kubeconfig={}",
                write("kubeconfig", &seed.server.kubeconfig(TOKEN))
            ),
            &format!("--metrics-bind-addr={metrics}"),
            &format!("--health-bind-addr={health}"),
            "--enable-leader-election=true",
        ];
        let args = AgentArgs::try_parse_from(words.iter().chain(flags)).expect("these flags exist");
        let stop = CancellationToken::new();
        let task = tokio::spawn(weeder::run(args, stop.clone()));
        Self {
            task,
            stop,
            files,
            ports,
        }
    }

    async fn get(&self, server: usize, path: &str) -> (u16, String) {
        let address = self.ports[server].local_addr().unwrap();
        let answer = reqwest::get(format!("http://{address}/{path}"))
            .await
            .unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        log::check(&text);
        (status, text)
    }

    async fn metrics(&self) -> String {
        self.get(0, "metrics").await.1
    }

    /// Waits until a line is served at `/metrics`.
    async fn shows(&self, line: &str) {
        until(line, async || {
            self.metrics().await.lines().any(|found| found == line)
        })
        .await;
    }

    async fn leads(&self) {
        self.shows(r#"leader_election_master_status{name="dwd-weeder-leader-election"} 1"#)
            .await;
    }

    async fn end(self) {
        self.stop.cancel();
        let ended = soon("the end of the process", self.task).await;
        ended.expect("no panic").expect("no error");
    }
}

/// A process that leads and knows all.
async fn started() -> (WeederSeed, WeederProcess) {
    let seed = WeederSeed::start().await;
    let process = WeederProcess::start(&seed, &[]);
    seed.watched(1).await;
    process.leads().await;
    (seed, process)
}

#[tokio::test]
async fn metrics_health_and_readiness_are_served() {
    let (seed, process) = started().await;
    for (path, line) in [("healthz", "[+]weeding ok"), ("readyz", "[+]watches ok")] {
        let (status, body) = process.get(1, path).await;
        assert!(status == 200 && body.contains(line), "{status}: {body}");
    }
    seed.crash("a", "p");
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
        let faults = seed.server.faults();
        let refused = faults.add(When::verb("list", resource), Fault::status(503));
        let process = WeederProcess::start(&seed, &[]);
        soon("a refused list", faults.met(refused, 1)).await;
        process.leads().await;
        process.shows("dwd_seed_known 0").await;
        faults.remove(refused);
        process.shows("dwd_seed_known 1").await;
        process.end().await;
    }
}

#[tokio::test]
async fn a_dry_run_says_what_it_would_delete_once_and_writes_nothing() {
    let seed = WeederSeed::start().await;
    let process = WeederProcess::start(&seed, &["--dry-run"]);
    seed.watched(1).await;
    seed.recover("a", ETCD);
    // Each further pod is one more: nothing is said of those before.
    for (name, count) in [("p", 1), ("q", 2), ("r", 3)] {
        seed.crash("a", name);
        process
            .shows(&format!(
                "dwd_weeder_deletions_total{{result=\"dry_run\"}} {count}"
            ))
            .await;
    }
    let writes = seed.server.requests().writes();
    assert_eq!(writes, 0, "no DELETE, no Lease, no Event");
    process.end().await;
}

#[tokio::test]
async fn a_delete_that_is_under_way_at_the_end_is_told() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    let delay = Fault::Delay(Duration::from_millis(500));
    let slow = seed
        .server
        .faults()
        .add(When::verb("delete", "pods"), delay);
    seed.crash("a", "p");
    seed.recover("a", ETCD);
    soon("a DELETE", seed.server.faults().met(slow, 1)).await;
    let activity = weeder.instruments.activity.clone();
    weeder.end().await;
    let config = weeder::config::parse(gardeners()).unwrap().config;
    let deletions = activity.status(&config, false).recent.deletions;
    let told = deletions.iter().map(|deletion| deletion.result);
    assert_eq!(told.collect::<Vec<_>>(), ["deleted"]);
}

#[tokio::test]
async fn a_deletion_is_an_event_that_names_the_service_that_is_back() {
    for everywhere in [false, true] {
        let seed = WeederSeed::start().await;
        let mut weeder = gardener::seed_weeder();
        if everywhere {
            let more = Rule::new("create", "events");
            weeder.rules.get_or_insert_default().push(more);
        }
        seed.server.access().grant(TOKEN, weeder);
        let process = WeederProcess::start(&seed, &[]);
        seed.watched(1).await;
        seed.crash("a", "p");
        seed.recover("a", ETCD);
        let event = seed.server.store().wait_for(|store| {
            let mut events = store.list("events", None).into_iter();
            events.find(|event| event["reason"] == "PodDeleted")
        });
        let event = soon("an Event", event).await;
        let message = "crash-looping pod deleted because etcd-main-client is ready again";
        let about = &event["involvedObject"];
        let (kind, namespace, message) = match everywhere {
            true => ("Pod", "a", message.to_owned()),
            false => ("Lease", "garden", format!("Pod a/p: {message}")),
        };
        assert_eq!(
            (&about["kind"], &about["namespace"], &event["message"]),
            (&kind.into(), &namespace.into(), &message.into())
        );
        process.end().await;
        let refused = seed.server.requests();
        assert_eq!(refused.count(|record| record.status == Some(403)), 0);
    }
}

#[tokio::test]
async fn every_metric_of_the_weeder_is_documented_and_served() {
    let (_seed, process) = started().await;
    let served = ScrapedMetrics::read(&process.metrics().await).unwrap();
    let shown: BTreeSet<&str> = served.types.keys().map(String::as_str).collect();
    let sections = include_str!("../../../docs/metrics.md").split("\n## ");
    let ours = sections
        .filter(|section| section.starts_with("Weeder") || section.starts_with("Both agents"));
    let name = |line: &'static str| line.strip_prefix("| `")?.split(['`', '{']).next();
    let documented: BTreeSet<&str> = ours.flat_map(str::lines).filter_map(name).collect();
    assert_eq!(shown, documented);
    process.end().await;
}

#[tokio::test]
async fn a_config_file_that_says_the_same_in_other_words_changes_nothing() {
    let (seed, process) = started().await;
    let text = format!("{}\n# a comment", gardeners());
    std::fs::write(process.files.path().join("config.yaml"), text).unwrap();
    process
        .shows(r#"dwd_config_reloads_total{result="taken"} 1"#)
        .await;
    seed.settle().await;
    process
        .shows(r#"dwd_weeder_windows_opened_total{reason="start"} 0"#)
        .await;
    process
        .shows(r#"dwd_weeder_windows_opened_total{reason="recovery"} 1"#)
        .await;
    assert_eq!(seed.lists().len(), 2);
    process.end().await;
}
