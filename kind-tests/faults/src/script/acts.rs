//! What happens in a story.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use api_server::{Fault, MemoryApi, Network, Record, Rule, When};
use chrono::TimeDelta;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use serde_json::{Value, json};
use testbed::agent::AgentStart;
use testbed::crash_loop::{PodHealth, ROLE, pod, slice};
use testbed::gardener::{self, IGNORE, PAUSE, PROTECTED, REPLICAS};
use testbed::renewers::stamp;
use tokio::time::Instant;

use super::Script;
use super::checks::scales;
use crate::oracle::disturbances::Disturbance;
use crate::pace::{HAND_OVER, STOP_DEADLINE};
use crate::shoot::{CLUSTERS, SoakShoot, long, resource_of};
use crate::story::be_away;
use crate::story::injected_fault::{InjectedFault, number};
use crate::story::life::{go_on, stop};

impl Script {
    pub(super) fn start(&self, name: &str) -> Result<()> {
        self.replica(name).start_as(|start| AgentStart {
            environment: self.environment.clone(),
            ..start.with(&self.flags)
        })
    }

    /// `OLD => NEW` in each config file that has it.
    pub(super) fn configure(&self, change: &str) -> Result<()> {
        let change = change.replace("\\n", "\n");
        let (old, new) = change.split_once(" => ").context("no => in it")?;
        let mut changed = 0;
        for replica in &self.life.agents.0 {
            let text = std::fs::read_to_string(&replica.start.config)?;
            if text.contains(old) {
                std::fs::write(&replica.start.config, text.replace(old, new))?;
                changed += 1;
            }
        }
        ensure!(changed > 0, "no config says so");
        Ok(())
    }

    /// An agent's Lease is held by somebody else for ten minutes, or free.
    pub(super) fn give_lease(&self, agent: &str, holder: &str) -> Result<()> {
        let now = stamp(TimeDelta::zero());
        let holder = holder.trim_matches('-');
        self.seed().store().apply(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": format!("dwd-{agent}-leader-election"), "namespace": "garden"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 600, "acquireTime": now, "renewTime": now, "leaseTransitions": 0},
        }))?;
        Ok(())
    }

    /// Agents may do only this on the seed, or this too.
    pub(super) fn allow(&self, only: Option<(&str, &str)>, also: Option<(&str, &str)>) {
        let rule = |(verbs, resources)| Rule::new(verbs, resources);
        for replica in &self.life.agents.0 {
            let mut user = replica.user();
            if let Some(only) = only {
                user.rules = Some(vec![rule(only)]);
            }
            user.rules.get_or_insert_default().extend(also.map(rule));
            self.seed().access().grant(&replica.token(), user);
        }
    }

    /// A merge patch of the Cluster's spec, or it is deleted, or made again.
    pub(super) fn change_cluster(&self, change: &str) -> Result<()> {
        let (store, namespace) = (self.seed().store(), &self.shoot().namespace);
        match change {
            "gone" => drop(store.delete(CLUSTERS, "", namespace)?),
            "new" => self.shoot().publish()?,
            spec => {
                let spec: Value = serde_json::from_str(spec)?;
                store.patch(CLUSTERS, "", namespace, &json!({ "spec": spec }))?;
            }
        }
        Ok(())
    }

    /// Whether nothing may be written or asked for from now on, as where the shoot is paused or moves.
    pub(super) fn leave_alone(&self, alone: bool) {
        match alone {
            true => stop(self.shoot(), "hands off"),
            false => go_on(self.shoot(), "hands on"),
        }
        self.shoot().update_record(|record, now| {
            if !alone {
                record.paused_until = Some(now);
            }
            record.paused_since = alone.then_some(now);
        });
    }

    /// The API server is away, for its nodes too.
    pub(super) async fn be_away(&self, time: Duration) {
        self.disturb(false);
        be_away(self.shoot(), InjectedFault::Network(Network::Refused), time).await;
        self.shoot().record().api.end(Instant::now());
    }

    /// The prober checks each second whether the shoot is `here`, as long as this says; no longer for
    /// "-".
    pub(super) fn check_owner(&self, says: &str) -> Result<()> {
        let check = "ownerCheck: {name: 'owner.{{domain}}', value: '{{seed}}', interval: 1s, timeout: 300ms, ";
        if says == "-" {
            return self.configure(&format!("{check}tolerance: 1h}}\n => \n"));
        }
        self.change_cluster(
            r#"{"seed": {"metadata": {"name": "here", "uid": "an-id"}},
                "shoot": {"status": {"advertisedAddresses": [{"name": "internal", "url": "https://api.s.p.internal.example.org"}]}}}"#,
        )?;
        self.configure(&format!(
            "probeInterval: => {check}{says}}}\nprobeInterval:"
        ))
    }

    /// A Cluster with something that is nested deeply, and a Machine that cannot be read, each with
    /// this label.
    pub(super) fn apply_unreadable(&self, label: &str) -> Result<()> {
        let mut cluster = gardener::cluster("shoot--p--deep", None);
        gardener::nest_deeply(&mut cluster);
        let mut machine = gardener::machine("shoot--p--deep", "broken");
        machine["status"]["currentStatus"] = json!(8);
        for mut object in [cluster, machine] {
            object["metadata"]["labels"] = json!({"a": label});
            self.seed().store().apply(object)?;
        }
        Ok(())
    }

    /// What a namespace says of a pause; nothing for "-".
    pub(super) fn pause(&self, namespace: &str, says: &str) -> Result<()> {
        let says = (says != "-").then_some(says);
        let annotations = json!({"metadata": {"annotations": {PAUSE: says}}});
        let store = self.seed().store();
        store.patch("namespaces", "", namespace, &annotations)?;
        Ok(())
    }

    /// Others do something to a dependent while a write of it arrives.
    pub(super) fn meanwhile(&mut self, change: &'static str) -> Result<()> {
        let (shoot, name) = (self.shoot().clone(), change.split(' ').next());
        let name = long(name.context("a name")?);
        let acts = move |record: &Record| {
            if scales(record) && record.name == name {
                others(&shoot, change).expect("it can be done");
            }
            false
        };
        self.seed().faults().add(When::matches(acts), Fault::Stall);
        Ok(())
    }

    /// A pod is changed or replaced while the first DELETE of it arrives.
    pub(super) fn meanwhile_pod(&self, place: &str, is_replaced: bool) -> Result<()> {
        let (namespace, name) = place.split_once('/').context("no name")?;
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let store = self.seed().store().clone();
        let is_over = AtomicBool::new(false);
        let acts = move |record: &Record| {
            if record.verb == "delete" && record.name == name && !is_over.swap(true, Relaxed) {
                let mut pod = store.get("pods", &namespace, &name).expect("it crashes");
                if is_replaced {
                    store
                        .delete("pods", &namespace, &name)
                        .expect("it is there");
                }
                pod["metadata"]["labels"]["a"] = "b".into();
                for own in ["uid", "resourceVersion"] {
                    pod["metadata"][own] = Value::Null;
                }
                store.apply(pod).expect("a pod");
            }
            false
        };
        self.seed().faults().add(When::matches(acts), Fault::Stall);
        Ok(())
    }

    pub(super) fn api(&self, is_seed: bool) -> &MemoryApi {
        match is_seed {
            true => self.seed(),
            false => &self.shoot().api,
        }
    }

    /// From now on the oracle knows that an API server does not answer as it should.
    pub(super) fn disturb(&self, is_seed: bool) {
        match is_seed {
            true => self.life.world.oracle.disturbances().seed.begin(),
            false => self.shoot().record().api.begin(),
        }
    }

    /// An API server has this fault from now on.
    pub(super) fn fail(&mut self, is_seed: bool, fault: &str) -> Result<()> {
        self.disturb(is_seed);
        let api = self.api(is_seed);
        match InjectedFault::named(fault)? {
            InjectedFault::Answers(when, fault) => {
                self.fault = Some((is_seed, api.faults().add(when, fault)));
            }
            InjectedFault::Network(network) => api.set_network(network),
            InjectedFault::Moment(strike) => strike(api),
        }
        Ok(())
    }

    /// Everybody answers as before.
    pub(super) fn end_faults(&self) {
        let now = Instant::now();
        let shoots = self.life.world.shoots.iter().map(|shoot| &*shoot.api);
        for api in shoots.chain([self.seed()]) {
            api.faults().clear();
            api.set_network(Network::Up);
        }
        // All that was on is over, and nothing else is due.
        let seed = Disturbance::clear_from(now + HAND_OVER);
        self.life.world.oracle.disturbances().seed = seed;
        for shoot in &self.life.world.shoots {
            shoot.record().api = Disturbance::clear_from(now + STOP_DEADLINE);
        }
    }

    /// A pod crash-loops that has this role, and an owner of its own.
    pub(super) fn crash(&self, place: &str, role: &str) -> Result<()> {
        let (namespace, name) = place.split_once('/').context("no name")?;
        let labels = json!({ROLE.0: ROLE.1, "role": role});
        let pod = pod(namespace, name, &labels, Some(place), PodHealth::Waiting);
        self.seed().store().apply(pod)?;
        Ok(())
    }

    /// The Service of a namespace, etcd's if no name is given, is ready or not.
    pub(super) fn turn(&self, words: &[&str], ready: bool) -> Result<()> {
        let service = words.get(1).copied().unwrap_or("etcd-main-client");
        self.seed().store().apply(slice(words[0], service, ready))?;
        Ok(())
    }

    /// `REPLICA DEPENDENT REPLICAS MEMORY held`: writes it so, in the name of a replica.
    pub(super) async fn patch(&self, words: &[&str]) -> Result<()> {
        let [replica, name, replicas, rest @ ..] = words else {
            bail!("too few words");
        };
        let marker = rest.contains(&"held").then_some("");
        let memory = rest.iter().find(|word| number::<i64>(word).is_ok());
        let patch = json!({"metadata": {"annotations": {REPLICAS: memory, PROTECTED: marker}}, "spec": {"replicas": number::<i64>(replicas)?}});
        let path = ("/apis/apps/v1", "deployments", long(name));
        self.ask(replica, Method::PATCH, path, patch.to_string())
            .await
    }

    pub(super) async fn delete(&self, words: &[&str]) -> Result<()> {
        let path = ("/api/v1", "pods", words[1]);
        self.ask(words[0], Method::DELETE, path, String::new())
            .await
    }

    /// Sends a request to the seed in the name of a replica.
    async fn ask(
        &self,
        replica: &str,
        method: Method,
        (api, resource, name): (&str, &str, &str),
        body: String,
    ) -> Result<()> {
        let namespace = &self.shoot().namespace;
        let content = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(format!("{api}/namespaces/{namespace}/{resource}/{name}"))
            .header(
                AUTHORIZATION,
                format!("Bearer {}", self.replica(replica).token()),
            )
            .header(CONTENT_TYPE, content)
            .body(body)?;
        let status = self.seed().answer(request).await?.status();
        ensure!(status.is_success(), "{status}");
        Ok(())
    }
}

/// Somebody else changes a dependent: `NAME REPLICAS`, `held`, `ignored`, `gone` or `new REPLICAS`.
pub(super) fn others(shoot: &SoakShoot, change: &'static str) -> Result<()> {
    let (name, change) = change.split_once(' ').context("no change in it")?;
    let name = long(name);
    let wanted = shoot.wanted(name);
    let annotated = |annotations: Value, replicas: i64| json!({"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}});
    let patch = match change {
        "gone" => {
            return shoot
                .seed
                .delete(resource_of(name), &shoot.namespace, name)
                .map(drop)
                .map_err(Into::into);
        }
        "held" => annotated(json!({REPLICAS: wanted.to_string(), PROTECTED: ""}), 0),
        "ignored" => annotated(json!({IGNORE: "true"}), wanted),
        replicas => {
            let is_new = replicas.starts_with("new ");
            let replicas = number(replicas.trim_start_matches("new "))?;
            if replicas > 0 {
                shoot.record().wanted.insert(name, replicas);
            }
            if is_new {
                return shoot.create_dependent(name);
            }
            json!({"spec": {"replicas": replicas}})
        }
    };
    shoot
        .seed
        .patch(resource_of(name), &shoot.namespace, name, &patch)?;
    Ok(())
}
