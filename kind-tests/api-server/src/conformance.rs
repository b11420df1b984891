//! One table of requests and what a Kubernetes API server answers. It is played against
//! [`crate::MemoryApi`] and against a kube-apiserver, so that the one stays like the other in what
//! clients read.

mod expectation;
mod row;
mod rows;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::{Request, Response};

use crate::Resource;
use row::Before;

/// A user with all rights, the lists of ConfigMaps of whom are rejected at some time.
pub const REJECTED: &str = "rejected";

/// A server that the table is played against. It has no objects of the namespaces `conformance` yet.
pub trait TestedServer {
    /// Sends a request as an administrator, or as another user; anybody but [`REJECTED`] may do
    /// nothing.
    fn send(
        &self,
        user: Option<&str>,
        request: Request<Vec<u8>>,
    ) -> impl Future<Output = Result<Response<Bytes>>>;

    /// Forgets all versions of objects but the newest.
    fn compact(&self) -> impl Future<Output = Result<()>>;

    /// From now on rejects lists of ConfigMaps by [`REJECTED`], as API priority and fairness does.
    fn reject(&self) -> impl Future<Output = Result<()>>;
}

/// The custom resource that the server is to have, with any spec and status.
pub fn widgets() -> Resource {
    Resource::custom("example.org/v1", "widgets", "Widget")
        .with_status()
        .with_scale()
}

/// Plays the table.
///
/// # Errors
/// When the server cannot be reached, or answers otherwise; then all differences are named.
pub async fn play(server: &impl TestedServer) -> Result<()> {
    let (mut known, mut differences) = (BTreeMap::new(), Vec::new());
    for row in rows::all() {
        match row.before {
            Some(Before::Compacted) => server.compact().await?,
            Some(Before::Rejecting) => server.reject().await?,
            None => {}
        }
        let answer = server.send(row.user, row.request(&known)?).await?;
        if let Err(difference) = row.check(&answer, &mut known) {
            differences.push(format!("{} {}: {difference}", row.method, row.path));
        }
    }
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}
