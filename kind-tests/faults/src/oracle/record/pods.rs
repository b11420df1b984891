//! What the weeder observes of a shoot's control plane: two Services, and pods that crash-loop
//! while the one that they need is down; and the judgement of what is deleted and what is not.

use std::collections::BTreeMap;
use std::time::Duration;

use api_server::ObservedWrite;
use tokio::time::Instant;

use super::judge::Violation;
use crate::oracle::disturbances::Disturbances;
use crate::oracle::violations::ViolationKind;
use crate::pace::{HAND_OVER, WINDOW};

/// The Services, each with the role of the pods that need it.
pub const SERVICES: [(&str, &str); 2] = [
    ("etcd-main-client", "apiserver"),
    ("kube-apiserver", "controller-manager"),
];
/// What a watch may be late by, and a DELETE that was under way.
const WAY: Duration = Duration::from_secs(2);
/// A crash-looping pod whose Service has recovered is deleted within this time: at once, or after
/// the 4 s for which it must have been terminated, and 4 s for a busy machine.
const DELETED_WITHIN: Duration = Duration::from_secs(8);

#[derive(Debug)]
pub struct ControlPlanePods {
    /// Whether each Service is ready, and since when.
    pub services: [(bool, Instant); 2],
    pods: BTreeMap<String, PodState>,
}

#[derive(Debug)]
struct PodState {
    /// The Service that it needs; none for pods that must never be deleted.
    needs: Option<usize>,
    crashing_since: Option<Instant>,
    /// Until when it may have been seen crashing.
    crashed_until: Instant,
}

impl ControlPlanePods {
    /// One with nothing in it yet.
    pub fn new(now: Instant) -> Self {
        Self {
            services: [(true, now); 2],
            pods: BTreeMap::new(),
        }
    }

    /// The pods that need a Service.
    pub fn pods_of(&self, service: usize) -> Vec<String> {
        self.pods
            .iter()
            .filter(|(_, pod)| pod.needs == Some(service))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Takes in a change of a pod.
    pub fn changed(&mut self, name: &str, write: &ObservedWrite<'_>, now: Instant) {
        if write.deleted {
            self.pods.remove(name);
            return;
        }
        let role = &write.after["metadata"]["labels"]["role"];
        let crashes = write.after["status"]["containerStatuses"][0]["state"]["running"].is_null();
        let new = PodState {
            needs: SERVICES.iter().position(|(_, needed_by)| role == needed_by),
            crashing_since: None,
            crashed_until: now,
        };
        let pod = self.pods.entry(name.to_owned()).or_insert(new);
        if !crashes && pod.crashing_since.is_some() {
            pod.crashed_until = now + WAY;
        }
        pod.crashing_since = pod.crashing_since.or(Some(now)).filter(|_| crashes);
    }

    /// Whether a pod may be deleted.
    pub fn may_be_deleted(
        &self,
        name: &str,
        disturbances: &Disturbances,
        now: Instant,
    ) -> Result<(), String> {
        let pod = self.pods.get(name).ok_or("nobody knows it")?;
        let service = pod
            .needs
            .ok_or("nobody recreates it, or no selector asks for it")?;
        if pod.crashing_since.is_none() && now > pod.crashed_until + disturbances.leeway {
            return Err("it does not crash".into());
        }
        let (ready, since) = self.services[service];
        // A weeder that starts opens its first windows when it leads, which may be that much later.
        let opened = since.max(disturbances.weeder_started + HAND_OVER);
        let until = if ready { opened + WINDOW } else { since };
        if now <= until + WAY + disturbances.leeway {
            return Ok(());
        }
        let time = now - since;
        Err(format!("what it needs is ready: {ready}, for {time:.1?}"))
    }

    /// The pods that should have been deleted.
    pub fn tick(&mut self, disturbances: &Disturbances, now: Instant) -> Vec<Violation> {
        let mut found = Vec::new();
        let weeding = disturbances.led_since("weeder", now);
        for (name, pod) in &mut self.pods {
            let Some((service, crashing)) = pod.needs.zip(pod.crashing_since) else {
                continue;
            };
            let (ready, since) = self.services[service];
            // The weeder must have known that the Service was down.
            let watched = weeding.is_some_and(|clear| clear + WAY <= since);
            let waited = now.saturating_duration_since(since.max(crashing));
            let is_late = waited > DELETED_WITHIN + disturbances.leeway;
            if ready && watched && is_late && now < since + WINDOW {
                // Found once, then counted again.
                pod.crashing_since = Some(now);
                let text = format!("pod {name} crashes {waited:.1?} after what it needs was ready");
                found.push((ViolationKind::NotWeeded, text));
            }
        }
        found
    }

    /// Why the pods are not idle; none when they are.
    pub fn why_not_idle(&self) -> Option<String> {
        let crashing = self
            .pods
            .iter()
            .find(|(_, pod)| pod.needs.is_some() && pod.crashing_since.is_some());
        crashing.map(|(name, _)| format!("{name} crashes"))
    }
}
