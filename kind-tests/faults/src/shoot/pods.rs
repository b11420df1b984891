//! The stand-in for those who run the pods of a shoot's control plane, and recreate what is
//! deleted.

use anyhow::Result;
use serde_json::json;
use testbed::crash_loop::{PodHealth, ROLE, pod, slice, status};

use super::SoakShoot;
use crate::oracle::record::pods::SERVICES;

/// What the kubelets of pods that need each Service say when these crash.
const CRASHES: [PodHealth; 2] = [PodHealth::Waiting, PodHealth::Terminated];

impl SoakShoot {
    /// Makes the Services and pods, with everything ready.
    pub(super) fn make_pods(&self) -> Result<()> {
        for (service, _) in SERVICES {
            self.seed.apply(slice(&self.namespace, service, true))?;
        }
        self.recreate_pods();
        // Nobody would recreate this one (D-44), and no selector asks for that one.
        self.seed.create(pod(
            &self.namespace,
            "bare",
            &json!({ROLE.0: ROLE.1, "role": "x"}),
            None,
            PodHealth::Waiting,
        ))?;
        self.seed.create(pod(
            &self.namespace,
            "other",
            &json!({"role": "x"}),
            Some("set"),
            PodHealth::Terminated,
        ))?;
        Ok(())
    }

    /// Recreates the pods that were deleted; they crash if what they need is not ready.
    pub fn recreate_pods(&self) {
        for (service, (_, role)) in SERVICES.iter().enumerate() {
            let (pods, ready) = {
                let plane = &self.record().pods;
                (plane.pods_of(service), plane.services[service].0)
            };
            if pods.is_empty() {
                let (name, labels) = (
                    format!("{role}-{}", fastrand::u32(..)),
                    json!({ROLE.0: ROLE.1, "role": role}),
                );
                // Only an unknown kind could be refused.
                let state = if ready {
                    PodHealth::Running
                } else {
                    CRASHES[service]
                };
                self.seed
                    .create(pod(&self.namespace, &name, &labels, Some("set"), state))
                    .ok();
            }
        }
    }

    /// A Service becomes ready or not. It counts as ready for as long as it may be seen so.
    pub fn turn(&self, service: usize, ready: bool) {
        let turned =
            || self.update_record(|record, now| record.pods.services[service] = (ready, now));
        if ready {
            turned();
        }
        // Only an unknown kind could be refused.
        self.seed
            .apply(slice(&self.namespace, SERVICES[service].0, ready))
            .ok();
        if !ready {
            turned();
        }
    }

    /// The pods that need a Service begin to crash, or are back by themselves.
    pub fn crash(&self, service: usize, crashes: bool) {
        // The store must not be used while the record is locked.
        let pods = self.record().pods.pods_of(service);
        let state = if crashes {
            CRASHES[service]
        } else {
            PodHealth::Running
        };
        for name in pods {
            // One that was deleted in this moment stays so.
            self.seed
                .update("pods", &self.namespace, &name, |pod| {
                    pod["status"] = status(state)
                })
                .ok();
        }
    }
}
