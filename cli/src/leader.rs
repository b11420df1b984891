//! The leaders, by the Leases of the two agents.

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use prober::{Fact, Tone};
use serde::Serialize;

use crate::output::with_causes;
use crate::replicas::{LIST_TIMEOUT, within};

/// Gardener's names (rule 79).
pub(crate) const PROBER: &str = "dwd-prober-leader-election";
pub(crate) const WEEDER: &str = "dwd-weeder-leader-election";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeaseHolder {
    lease: &'static str,
    /// `None` if nobody leads, or the Lease cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renewed: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_duration_seconds: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(crate) async fn read(client: &Client, namespace: &str, lease: &'static str) -> LeaseHolder {
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let found = within(LIST_TIMEOUT, async { Ok(leases.get_opt(lease).await?) }).await;
    let (found, problem) = match found {
        Ok(found) => (found, None),
        Err(error) => (None, Some(with_causes(error.as_ref()))),
    };
    let spec = found.and_then(|lease| lease.spec).unwrap_or_default();
    LeaseHolder {
        lease,
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
        renewed: spec
            .renew_time
            .and_then(|time| DateTime::from_timestamp_micros(time.0.as_microsecond())),
        lease_duration_seconds: spec.lease_duration_seconds,
        problem,
    }
}

impl LeaseHolder {
    pub(crate) fn fact(&self) -> Fact {
        let name = if self.lease == PROBER {
            "Prober leads"
        } else {
            "Weeder leads"
        };
        let (tone, text) = match (&self.problem, &self.holder, self.renewed) {
            (Some(problem), ..) => (Tone::Warn, format!("unknown: {problem}")),
            (None, Some(holder), Some(renewed)) => {
                let age = Utc::now() - renewed;
                let limit = TimeDelta::seconds(self.lease_duration_seconds.unwrap_or(15).into());
                let text = format!("{holder}, renewed {} s ago", age.num_seconds());
                if age > limit {
                    (Tone::Bad, format!("{text}: it seems to be gone"))
                } else {
                    (Tone::Good, text)
                }
            }
            (None, Some(holder), None) => (Tone::Soft, holder.clone()),
            (None, None, _) => (Tone::Bad, "nobody".to_owned()),
        };
        Fact::new(tone, name, text)
    }
}
