//! What real kubelets make of the ten seconds between two renewals of a Lease.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use testbed::KubeApi;
use testbed::followed::Followed;
use testbed::kube_api::ObjectChange;
use testbed::objects::name;
use testbed::shoot::{LEASES, renew_time};

/// The renewals that were seen, by node.
pub struct ObservedRenewals(Followed<BTreeMap<String, Vec<DateTime<Utc>>>>);

impl ObservedRenewals {
    /// Watches the Leases of a cluster's nodes.
    pub fn of(api: &KubeApi) -> Self {
        let observe = |seen: &mut BTreeMap<String, Vec<_>>, change| {
            if let ObjectChange::Set(lease) = change
                && let Some(time) = renew_time(&lease)
            {
                let times = seen.entry(name(&lease).to_owned()).or_default();
                if times.last() != Some(&time) {
                    times.push(time);
                }
            }
        };
        Self(Followed::start(api, LEASES, BTreeMap::new(), observe))
    }

    /// The seconds between one renewal of a node's Lease and the next.
    pub fn spacings(&self, node: &str) -> Vec<f64> {
        let seen = self.0.get();
        let times = seen.get(node).map(Vec::as_slice).unwrap_or_default();
        times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).as_seconds_f64())
            .collect()
    }
}
