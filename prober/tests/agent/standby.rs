//! Two replicas, one of which leads: what the other does in its place, and what it does not (D-50).

use std::collections::BTreeSet;
use std::time::Duration;

use api_server::{Fault, Record, User, When};
use testbed::PATIENCE;
use testbed::gardener;
use tokio::time::timeout;

use super::log::STANDBY_TOKEN;
use super::world::{CONFIG, LEASES, NAMESPACE, ProberWorld, at, held, scales};

const STANDBY: &str = "system:serviceaccount:garden:standby";
const LOCK: (&str, &str, &str) = (
    "leases.coordination.k8s.io",
    "garden",
    "dwd-prober-leader-election",
);
/// The Lease outlives everything here, so that whoever is dead or blind keeps the lead.
const ELECTION: [&str; 4] = [
    "--enable-leader-election=true",
    "--leader-elect-lease-duration=90s",
    "--leader-elect-renew-deadline=60s",
    "--leader-elect-retry-period=1s",
];

struct Pair {
    world: ProberWorld,
    /// The name of the leader in the election.
    leader: String,
    metrics: String,
}

impl Pair {
    /// Both have seen the leases change.
    async fn start() -> Self {
        Self::of(ProberWorld::new().await).await
    }

    async fn of(mut world: ProberWorld) -> Self {
        world.seed.access().grant(
            STANDBY_TOKEN,
            User {
                name: STANDBY.into(),
                ..gardener::seed_prober()
            },
        );
        world.servers.extend(ELECTION.map(String::from));
        world.start(CONFIG);
        world.probes(3).await;
        let (resource, namespace, name) = LOCK;
        let leader = world.seed.store().wait_for(|store| {
            let lease = store.get(resource, namespace, name)?;
            lease["spec"]["holderIdentity"]
                .as_str()
                .filter(|holder| !holder.is_empty())
                .map(str::to_owned)
        });
        let leader = timeout(PATIENCE, leader).await.expect("a leader");
        let of_leader = connections(&world.shoot.requests().all());

        let metrics = world.address();
        world.servers = vec![
            format!("--metrics-bind-addr={metrics}"),
            "--health-bind-addr=0".into(),
            "--pprof-bind-addr=0".into(),
        ];
        world.servers.extend(ELECTION.map(String::from));
        world.join(STANDBY_TOKEN);
        let joined = world.shoot.requests().wait_for(|all| {
            let probes =
                |record: &&Record| record.path == LEASES && !of_leader.contains(&record.connection);
            (all.iter()
                .filter(probes)
                .filter(|record| record.status == Some(200))
                .count()
                >= 3)
                .then_some(())
        });
        timeout(PATIENCE, joined)
            .await
            .expect("the standby probes, too");
        Self {
            world,
            leader,
            metrics: format!("http://{metrics}/metrics"),
        }
    }

    /// By whom the dependents were written.
    fn writers(&self) -> BTreeSet<String> {
        self.world
            .seed
            .requests()
            .all()
            .into_iter()
            .filter(scales)
            .map(|record| record.user)
            .collect()
    }

    /// The name in the election of whoever leads now.
    fn leads(&self) -> String {
        let (resource, namespace, name) = LOCK;
        let lease = self
            .world
            .seed
            .store()
            .get(resource, namespace, name)
            .expect("a Lease");
        lease["spec"]["holderIdentity"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// How often the standby says that it wrote in the leader's place: down, up.
    async fn without_lead(&self) -> [f64; 2] {
        self.values(
            ["down", "up"]
                .map(|way| format!("dwd_protected_without_lead_total{{direction=\"{way}\"}}")),
        )
        .await
    }

    /// What the standby's metrics say.
    async fn values<const N: usize>(&self, names: [String; N]) -> [f64; N] {
        let text = reqwest::get(&self.metrics)
            .await
            .expect("an answer")
            .text()
            .await
            .expect("text");
        names.map(|name| {
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix(&name)?.strip_prefix(' '));
            assert!(value.is_some(), "no {name} in\n{text}");
            value
                .and_then(|value| value.parse().ok())
                .expect("a number")
        })
    }

    /// Waits until an Event names the leader that did not act.
    async fn event(&self) {
        let event = self.world.seed.store().wait_for(|store| {
            let names = |event: &serde_json::Value| {
                event["reason"] == "LeaderDidNotAct"
                    && event["message"]
                        .as_str()
                        .is_some_and(|text| text.contains(&self.leader))
            };
            store.list("events", None).iter().any(names).then_some(())
        });
        assert!(
            timeout(PATIENCE, event).await.is_ok(),
            "{:?}",
            self.world.seed.store().list("events", None)
        );
    }
}

fn connections(records: &[Record]) -> BTreeSet<u64> {
    records.iter().map(|record| record.connection).collect()
}

#[tokio::test]
async fn a_leader_that_is_killed_in_mid_outage_costs_the_standbys_patience_and_not_the_shoot() {
    let mut pair = Pair::start().await;
    pair.world.nodes.cut_all();
    pair.world.kill().await;
    pair.world.until([held("1"), held("1"), held("1")]).await;
    assert_eq!(pair.leads(), pair.leader, "nobody leads in its place yet");
    assert_eq!(pair.writers(), [STANDBY.to_owned()].into());
    assert_eq!(pair.world.written().len(), 3);
    pair.event().await;
    assert_eq!(pair.without_lead().await, [3.0, 0.0]);
    pair.world.end().await;
}

#[tokio::test]
async fn beside_a_leader_that_acts_a_standby_writes_nothing_in_a_whole_outage_and_its_recovery() {
    let world = ProberWorld::new().await;
    // So that the leader has its time also on a busy machine.
    world.apply(gardener::cluster(NAMESPACE, Some("12s")));
    let pair = Pair::of(world).await;
    // The leader takes its time, but not longer than it has.
    let leaders = When::matches(|record| scales(record) && record.user != STANDBY);
    pair.world
        .seed
        .faults()
        .add(leaders, Fault::Delay(Duration::from_millis(150)));
    pair.world.nodes.cut_all();
    pair.world.until([held("1"), held("1"), held("1")]).await;
    pair.world.probes(6).await;
    pair.world.nodes.heal_all();
    pair.world.until([at(1), at(1), at(1)]).await;
    pair.world.probes(6).await;
    assert_eq!(pair.writers(), [gardener::seed_prober().name].into());
    assert_eq!(pair.without_lead().await, [0.0, 0.0]);
    pair.world.end().await;
}
