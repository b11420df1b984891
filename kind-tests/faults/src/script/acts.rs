//! What happens in a story.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, Result, bail, ensure};
use api_server::{Fault, MemoryApi, Record, Rule, When};
use chrono::TimeDelta;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use serde_json::{Value, json};
use testbed::crash_loop::{PodHealth, ROLE, pod, slice};
use testbed::gardener::{PROTECTED, REPLICAS};
use testbed::renewers::stamp;

use super::Script;
use super::checks::scales;
use crate::agents::replica::token;
use crate::shoot::long;
use crate::story::injected_fault::number;

impl Script {
    /// `OLD => NEW` in each config file that has it.
    pub(super) fn configure(&self, change: &str) -> Result<()> {
        let change = change.replace("\\n", "\n");
        let (old, new) = change.split_once(" => ").context("no => in it")?;
        self.life.agents.configure(old, new)
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

    /// Agents may do only this on the seed, or this beside all that they may usually.
    pub(super) fn allow(&self, verbs: &str, resources: &str, only: bool) {
        for replica in &self.life.agents.0 {
            let mut user = replica.user();
            let rules = user.rules.get_or_insert_default();
            if only {
                rules.clear();
            }
            rules.push(Rule::new(verbs, resources));
            self.seed().access().grant(&token(replica.name), user);
        }
    }

    /// The prober checks each second whether the shoot is `here`, as long as this says; no longer for
    /// "-".
    pub(super) fn check_owner(&self, says: &str) -> Result<()> {
        let check = "ownerCheck: {name: 'owner.{{domain}}', value: '{{seed}}', interval: 1s, timeout: 300ms, ";
        if says == "-" {
            return self.configure(&format!("{check}tolerance: 1h}}\n => \n"));
        }
        self.shoot().change_cluster(
            r#"{"seed": {"metadata": {"name": "here", "uid": "an-id"}},
                "shoot": {"status": {"advertisedAddresses": [{"name": "internal", "url": "https://api.s.p.internal.example.org"}]}}}"#,
        )?;
        self.configure(&format!(
            "probeInterval: => {check}{says}}}\nprobeInterval:"
        ))
    }

    /// Others do something to a dependent while a write of it arrives.
    pub(super) fn meanwhile(&self, change: &str) -> Result<()> {
        let (name, _) = change.split_once(' ').context("no change")?;
        let (shoot, name, change) = (
            self.shoot().clone(),
            long(name).to_owned(),
            change.to_owned(),
        );
        self.observe(move |record| {
            if scales(record) && record.name == name {
                shoot.others(&change).expect("it can be done");
            }
        });
        Ok(())
    }

    /// A pod is changed or replaced while the first DELETE of it arrives.
    pub(super) fn meanwhile_pod(&self, place: &str, is_replaced: bool) -> Result<()> {
        let mut new = crash_looping(place, "apiserver")?;
        new["metadata"]["labels"]["a"] = "b".into();
        let store = self.seed().store().clone();
        let is_over = AtomicBool::new(false);
        self.observe(move |record| {
            if record.verb == "delete" && !is_over.swap(true, Relaxed) {
                if is_replaced {
                    let gone = store.delete("pods", &record.namespace, &record.name);
                    gone.expect("it is there");
                }
                store.apply(new.clone()).expect("a pod");
            }
        });
        Ok(())
    }

    /// Something observes each request to the seed while it arrives.
    fn observe(&self, observe: impl Fn(&Record) + Send + Sync + 'static) {
        let observes = When::matches(move |record| {
            observe(record);
            false
        });
        self.seed().faults().add(observes, Fault::Stall);
    }

    pub(super) fn api(&self, is_seed: bool) -> &MemoryApi {
        match is_seed {
            true => self.seed(),
            false => &self.shoot().api,
        }
    }

    /// A pod crash-loops that has this role.
    pub(super) fn crash(&self, place: &str, role: &str) -> Result<()> {
        self.seed().store().apply(crash_looping(place, role)?)?;
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
        let place = ("/apis/apps/v1", "deployments", long(name));
        self.ask(replica, Method::PATCH, place, patch).await
    }

    pub(super) async fn delete(&self, words: &[&str]) -> Result<()> {
        let place = ("/api/v1", "pods", words[1]);
        self.ask(words[0], Method::DELETE, place, json!({})).await
    }

    /// Sends a request to the seed in the name of a replica.
    async fn ask(
        &self,
        replica: &str,
        method: Method,
        (api, resource, name): (&str, &str, &str),
        body: Value,
    ) -> Result<()> {
        let content = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let namespace = &self.shoot().namespace;
        let token = token(self.replica(replica).name);
        let request = Request::builder()
            .method(method)
            .uri(format!("{api}/namespaces/{namespace}/{resource}/{name}"))
            .header(AUTHORIZATION, format!("Bearer {token}"))
            .header(CONTENT_TYPE, content)
            .body(body.to_string())?;
        let status = self.seed().answer(request).await?.status();
        ensure!(status.is_success(), "{status}");
        Ok(())
    }
}

/// The pod of this namespace and name, with an owner of its own.
fn crash_looping(place: &str, role: &str) -> Result<Value> {
    let (namespace, name) = place.split_once('/').context("no name")?;
    let labels = json!({ROLE.0: ROLE.1, "role": role});
    let waiting = PodHealth::Waiting;
    Ok(pod(namespace, name, &labels, Some(place), waiting))
}
