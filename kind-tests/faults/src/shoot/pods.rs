//! The stand-in for those who run the pods of a shoot's control plane, and recreate what is
//! deleted.

use anyhow::Result;
use serde_json::{Value, json};
use testbed::crash_loop::{PodHealth, ROLE, pod, slice, status};

use super::SoakShoot;
use crate::oracle::record::pods::SERVICES;

/// What the kubelets of pods that need each Service say when these crash.
const CRASHES: [PodHealth; 2] = [PodHealth::Waiting, PodHealth::Terminated];

fn health(service: usize, crashes: bool) -> PodHealth {
    if crashes {
        CRASHES[service]
    } else {
        PodHealth::Running
    }
}

impl SoakShoot {
    /// Makes the Services and pods, with everything ready.
    pub(super) fn make_pods(&self) -> Result<()> {
        for (service, _) in SERVICES {
            self.seed.apply(slice(&self.namespace, service, true))?;
        }
        self.recreate_pods()?;
        // Nobody would recreate this one (D-44), and no selector asks for that one.
        for (name, labels, owner) in [
            ("bare", json!({ROLE.0: ROLE.1, "role": "x"}), None),
            ("other", json!({"role": "x"}), Some("set")),
        ] {
            let pod = pod(&self.namespace, name, &labels, owner, PodHealth::Waiting);
            self.seed.create(pod)?;
        }
        Ok(())
    }

    /// Recreates the pods that were deleted; they crash if what they need is not ready.
    pub fn recreate_pods(&self) -> Result<()> {
        for (service, (_, role)) in SERVICES.iter().enumerate() {
            let (pods, ready) = {
                let plane = &self.record().pods;
                (plane.pods_of(service), plane.services[service].0)
            };
            if pods.is_empty() {
                let name = format!("{role}-{}", fastrand::u32(..));
                let labels = json!({ROLE.0: ROLE.1, "role": role});
                let health = health(service, !ready);
                let pod = pod(&self.namespace, &name, &labels, Some("set"), health);
                self.seed.create(pod)?;
            }
        }
        Ok(())
    }

    /// A Service becomes ready or not. It counts as ready for as long as it may be seen so.
    pub(super) fn turn(&self, service: usize, ready: bool) -> Result<()> {
        let turned =
            || self.update_record(|record, now| record.pods.services[service] = (ready, now));
        if ready {
            turned();
        }
        let (name, _) = SERVICES[service];
        self.seed.apply(slice(&self.namespace, name, ready))?;
        if !ready {
            turned();
        }
        Ok(())
    }

    /// The pods that need a Service begin to crash, or are back by themselves.
    pub(super) fn crash(&self, service: usize, crashes: bool) {
        // The store must not be used while the record is locked.
        let pods = self.record().pods.pods_of(service);
        let status = status(health(service, crashes));
        for name in pods {
            let change = |pod: &mut Value| pod["status"] = status.clone();
            // One that was deleted in this moment stays so.
            self.seed
                .update("pods", &self.namespace, &name, change)
                .ok();
        }
    }
}
