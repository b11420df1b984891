//! What real kubelets make of the ten seconds between two renewals of a Lease.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use testbed::KubeApi;
use testbed::kube_api::ObjectChange;
use testbed::objects::name;
use testbed::shoot::{LEASES, renew_time};
use tokio::task::JoinHandle;

/// The renewals that were seen, by node.
pub struct ObservedRenewals {
    seen: Arc<Mutex<BTreeMap<String, Vec<DateTime<Utc>>>>>,
    _watch: JoinHandle<()>,
}

impl ObservedRenewals {
    /// Watches the Leases of a cluster's nodes.
    pub fn of(api: &KubeApi) -> Self {
        let seen = Arc::new(Mutex::new(BTreeMap::<String, Vec<_>>::new()));
        let (api, observed) = (api.clone(), seen.clone());
        let watch = async move {
            let observe = |change| {
                if let ObjectChange::Set(lease) = change
                    && let Some(time) = renew_time(&lease)
                {
                    let mut seen = observed.lock();
                    let times = seen.entry(name(&lease).to_owned()).or_default();
                    if times.last() != Some(&time) {
                        times.push(time);
                    }
                }
            };
            api.keep_following(LEASES, observe).await;
        };
        Self {
            seen,
            _watch: tokio::spawn(watch),
        }
    }

    /// The seconds between one renewal of a node's Lease and the next.
    pub fn spacings(&self, node: &str) -> Vec<f64> {
        let seen = self.seen.lock();
        let times = seen.get(node).map(Vec::as_slice).unwrap_or_default();
        times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).as_seconds_f64())
            .collect()
    }
}
