//! `/statusz`: how an agent is, in one page for people and the same as JSON for scripts.
//!
//! ```text
//! agent's own status --Serialize--> /statusz.json
//!                    --body-------> /statusz, also at /: HTML without scripts and without anything from elsewhere
//! ```
//!
//! It shows names of shoots and nodes, and no content of any Secret.

mod page;

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::routing::get;
use axum::{Json, Router};
use chrono::{DateTime, SubsecRound, Utc};
use maud::Markup;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

pub use self::page::{TIMESTAMP, ago, table, timestamp};
use crate::leader_election::{Election, RoleStatus};

/// An agent's own work, as it is shown besides what every process shows.
pub trait Status: Serialize {
    /// The same for people.
    fn body(&self) -> Markup;

    /// Says in a sentence what a replica does that does not lead.
    fn without_lead(&self) -> &'static str;
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessStatus {
    pub agent: Cow<'static, str>,
    pub version: Cow<'static, str>,
    /// The time on this machine's clock.
    pub now: DateTime<Utc>,
    pub uptime_seconds: u64,
    #[serde(flatten)]
    pub role: RoleStatus,
}

/// The JSON: the process, and beside it the fields of its agent's own status.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WholeStatus<S> {
    pub process: ProcessStatus,
    #[serde(flatten)]
    pub status: S,
}

/// Serves the page and its JSON. `status` answers at once, from memory.
pub(crate) fn router<S: Status>(
    agent: &'static str,
    election: Election,
    status: impl Fn() -> S + Send + Sync + 'static,
) -> Router {
    let started = Instant::now();
    let json = Arc::new(move || {
        let (now, uptime_seconds) = (Utc::now().trunc_subsecs(0), started.elapsed().as_secs());
        let process = ProcessStatus {
            agent: agent.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            now,
            uptime_seconds,
            role: election.status(),
        };
        WholeStatus {
            process,
            status: status(),
        }
    });
    let whole = Arc::clone(&json);
    let html = async move || {
        let WholeStatus { process, status } = whole();
        let page = page::render(&process, &status).into_string();
        // Nothing but its own style sheet: also a name that slipped through unescaped could run
        // nothing.
        let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
        let kind = (CONTENT_TYPE, "text/html; charset=utf-8");
        (
            [
                kind,
                (CACHE_CONTROL, "no-store"),
                (CONTENT_SECURITY_POLICY, policy),
            ],
            page,
        )
    };
    let json = async move || Json(json());
    Router::new()
        .route("/", get(html.clone()))
        .route("/statusz", get(html))
        .route("/statusz.json", get(json))
}
