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
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chrono::{DateTime, SubsecRound, Utc};
use maud::Markup;
use serde::Serialize;
use tokio::time::Instant;

pub use self::page::{ago, span, table, timestamp};
use crate::leader_election::{Role, Standing};

/// What an agent shows of its own work, besides what every process shows.
pub trait Status: Serialize {
    /// The same for people.
    fn body(&self) -> Markup;

    /// What a replica does that does not lead, in a sentence.
    fn without_lead(&self) -> &'static str;
}

/// What is shown of the process.
#[derive(Clone, Debug)]
pub struct About {
    pub agent: &'static str,
    /// What part it plays among its replicas.
    pub role: Role,
    started: Instant,
}

/// [`About`] at one moment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Process {
    agent: &'static str,
    version: &'static str,
    /// The time on this machine's clock.
    now: DateTime<Utc>,
    uptime_seconds: u64,
    #[serde(flatten)]
    standing: Standing,
}

#[derive(Serialize)]
struct Whole<'a, S> {
    process: &'a Process,
    #[serde(flatten)]
    status: &'a S,
}

impl About {
    pub fn new(agent: &'static str, role: Role) -> Self {
        Self { agent, role, started: Instant::now() }
    }

    fn process(&self) -> Process {
        Process {
            agent: self.agent,
            version: env!("CARGO_PKG_VERSION"),
            now: Utc::now().trunc_subsecs(0),
            uptime_seconds: self.started.elapsed().as_secs(),
            standing: self.role.standing(),
        }
    }
}

/// Serves the page and its JSON. `status` answers at once, from memory.
pub fn router<S: Status>(about: About, status: impl Fn() -> S + Send + Sync + 'static) -> Router {
    let status = Arc::new(status);
    let html = {
        let (about, status) = (about.clone(), Arc::clone(&status));
        move || {
            let page = page::render(&about.process(), &status()).into_string();
            async move { in_no_cache("text/html; charset=utf-8", page) }
        }
    };
    let json = move || {
        let answer = Json(Whole { process: &about.process(), status: &status() }).into_response();
        async move { answer }
    };
    Router::new().route("/", get(html.clone())).route("/statusz", get(html)).route("/statusz.json", get(json))
}

fn in_no_cache(content_type: &'static str, body: String) -> Response {
    // Nothing but its own style sheet: also a name that slipped through unescaped could run nothing.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    let headers = [(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-store"), (CONTENT_SECURITY_POLICY, policy)];
    (headers, body).into_response()
}
