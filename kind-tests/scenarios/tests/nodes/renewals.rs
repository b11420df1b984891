//! What real kubelets make of the ten seconds between two renewals of a Lease.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use chrono::{DateTime, Utc};
use testbed::KubeApi;
use testbed::kube_api::Change;
use tokio::task::JoinHandle;

/// The renewals that were seen, by node.
pub struct Renewals {
    seen: Arc<Mutex<BTreeMap<String, Vec<DateTime<Utc>>>>>,
    _watch: JoinHandle<Result<()>>,
}

impl Renewals {
    /// Watches the Leases of a cluster's nodes.
    pub fn of(api: &KubeApi) -> Self {
        let seen = Arc::new(Mutex::new(BTreeMap::<String, Vec<_>>::new()));
        let (api, told) = (api.clone(), seen.clone());
        let watch = async move {
            api.follow(
                "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
                |change| {
                    let Change::Set(lease) = change else { return };
                    let time = lease["spec"]["renewTime"]
                        .as_str()
                        .and_then(|time| DateTime::parse_from_rfc3339(time).ok());
                    if let (Some(time), Some(name)) = (time, lease["metadata"]["name"].as_str()) {
                        let mut seen = told.lock().unwrap_or_else(PoisonError::into_inner);
                        let times = seen.entry(name.into()).or_default();
                        if times.last() != Some(&time.to_utc()) {
                            times.push(time.to_utc());
                        }
                    }
                },
            )
            .await
        };
        Self {
            seen,
            _watch: tokio::spawn(watch),
        }
    }

    /// The seconds between one renewal of a node's Lease and the next.
    pub fn spacings(&self, node: &str) -> Vec<f64> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let times = seen.get(node).map(Vec::as_slice).unwrap_or_default();
        times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).as_seconds_f64())
            .collect()
    }
}
