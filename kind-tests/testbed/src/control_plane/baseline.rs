//! What a control plane holds before a scenario, so that the next scenario finds the same without a
//! new API server.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::Etcd;
use crate::kube_api::KubeApi;

/// All keys that an API server has in etcd, with their values in base64.
pub struct Baseline {
    etcd: KubeApi,
    prefix: String,
    entries: BTreeMap<String, String>,
}

impl Baseline {
    /// What the API server with this prefix holds now.
    ///
    /// # Errors
    /// When etcd does not answer.
    pub async fn of(etcd: &Etcd, prefix: &str) -> Result<Self> {
        let etcd = KubeApi::without_tls(etcd.url())?;
        let entries = entries(&etcd, prefix).await?;
        Ok(Self {
            etcd,
            prefix: prefix.into(),
            entries,
        })
    }

    /// Deletes what has come since, and puts back what was changed or deleted. The API server
    /// learns it by its watches.
    ///
    /// # Errors
    /// When etcd does not answer.
    pub async fn restore(&self) -> Result<()> {
        let now = entries(&self.etcd, &self.prefix).await?;
        for key in now.keys().filter(|key| !self.entries.contains_key(*key)) {
            self.etcd
                .post("/v3/kv/deleterange", &json!({"key": STANDARD.encode(key)}))
                .await?;
        }
        for (key, value) in self
            .entries
            .iter()
            .filter(|(key, value)| now.get(*key) != Some(value))
        {
            self.etcd
                .post(
                    "/v3/kv/put",
                    &json!({"key": STANDARD.encode(key), "value": value}),
                )
                .await?;
        }
        Ok(())
    }
}

/// All that is below a prefix but the Lease of the API server itself, which it renews all the time.
async fn entries(etcd: &KubeApi, prefix: &str) -> Result<BTreeMap<String, String>> {
    let [from, to] = [format!("/{prefix}/"), format!("/{prefix}0")].map(|key| STANDARD.encode(key));
    let answer = etcd
        .post("/v3/kv/range", &json!({"key": from, "range_end": to}))
        .await?;
    let mut entries = BTreeMap::new();
    for entry in answer["kvs"].as_array().context("no entries")? {
        let key = String::from_utf8(STANDARD.decode(entry["key"].as_str().context("no key")?)?)?;
        if !key.contains("/leases/kube-system/") {
            // An empty value is left out.
            entries.insert(key, entry["value"].as_str().unwrap_or_default().into());
        }
    }
    Ok(entries)
}
