//! `/statusz`: how an agent is, in one page for people and the same as JSON for scripts.
//!
//! ```text
//! agent's own status --Serialize--> /statusz.json
//!                    --body-------> /statusz, also at /: HTML without scripts and without anything from elsewhere
//! ```
//!
//! It shows names of shoots and nodes, and no content of any Secret.

mod page;

use std::sync::Arc;

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use chrono::{DateTime, SubsecRound, Utc};
use maud::Markup;
use serde::Serialize;
use tokio::time::Instant;

pub use self::page::{TIMESTAMP, ago, table, timestamp};
use crate::leader_election::{Role, RoleStatus};

/// What an agent shows of its own work, besides what every process shows.
pub trait Status: Serialize {
    /// The same for people.
    fn body(&self) -> Markup;

    /// What a replica does that does not lead, in a sentence.
    fn without_lead(&self) -> &'static str;
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProcessStatus {
    agent: &'static str,
    version: &'static str,
    /// The time on this machine's clock.
    now: DateTime<Utc>,
    uptime_seconds: u64,
    #[serde(flatten)]
    role: RoleStatus,
}

#[derive(Serialize)]
struct Whole<S> {
    process: ProcessStatus,
    #[serde(flatten)]
    status: S,
}

/// Serves the page and its JSON. `role` is what part the process plays among its replicas; `status`
/// answers at once, from memory.
pub(crate) fn router<S: Status>(
    agent: &'static str,
    role: Role,
    status: impl Fn() -> S + Send + Sync + 'static,
) -> Router {
    let started = Instant::now();
    let json = Arc::new(move || {
        let (now, uptime_seconds) = (Utc::now().trunc_subsecs(0), started.elapsed().as_secs());
        let process = ProcessStatus {
            agent,
            version: env!("CARGO_PKG_VERSION"),
            now,
            uptime_seconds,
            role: role.status(),
        };
        Whole {
            process,
            status: status(),
        }
    });
    let whole = Arc::clone(&json);
    let html = async move || {
        let Whole { process, status } = whole();
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
    let json = async move || Json(json()).into_response();
    Router::new()
        .route("/", get(html.clone()))
        .route("/statusz", get(html))
        .route("/statusz.json", get(json))
}
