//! `/healthz` and `/readyz`: does the process still do its work, and does it know enough to do it?
//! And what others need to do theirs.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::get;

pub struct Check {
    pub name: &'static str,
    /// Answers at once, from memory; `Err` says what is wrong.
    pub ask: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl Check {
    pub fn new(
        name: &'static str,
        ask: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            ask: Box::new(ask),
        }
    }
}

/// Serves pages about things that have names, at a path with `{name}` where the name stands. `ask`
/// answers at once, from memory, what is to be said of the thing with this name.
pub fn lookup(
    path: &str,
    ask: impl Fn(&str) -> (StatusCode, String) + Clone + Send + Sync + 'static,
) -> Router {
    Router::new().route(path, get(async move |Path(name): Path<String>| ask(&name)))
}

/// Serves `/healthz` for the first and `/readyz` for the second checks: 200 when all pass, else
/// 500. The body has a line for each check, as controller-runtime's has when asked to be verbose.
pub(crate) fn router(live: Vec<Check>, ready: Vec<Check>) -> Router {
    let endpoint = |checks: Vec<Check>| {
        let checks = Arc::new(checks);
        get(async move || answer(&checks))
    };
    Router::new()
        .route("/healthz", endpoint(live))
        .route("/readyz", endpoint(ready))
}

fn answer(checks: &[Check]) -> (StatusCode, String) {
    let mut status = StatusCode::OK;
    let mut body = String::new();
    for check in checks {
        match (check.ask)() {
            Ok(()) => body.push_str(&format!("[+]{} ok\n", check.name)),
            Err(problem) => {
                status = StatusCode::INTERNAL_SERVER_ERROR;
                body.push_str(&format!("[-]{} failed: {problem}\n", check.name));
            }
        }
    }
    body.push_str(if status == StatusCode::OK {
        "ok\n"
    } else {
        "failed\n"
    });
    (status, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_must_pass_and_each_says_how_it_is() {
        let passing = || Check::new("manager", || Ok(()));
        assert_eq!(
            answer(&[passing()]),
            (StatusCode::OK, "[+]manager ok\nok\n".to_owned())
        );
        let failing = Check::new("probes", || Err("shoot--a--b is 90 s late".to_owned()));
        let expected = "[+]manager ok\n[-]probes failed: shoot--a--b is 90 s late\nfailed\n";
        assert_eq!(
            answer(&[passing(), failing]),
            (StatusCode::INTERNAL_SERVER_ERROR, expected.to_owned())
        );
    }
}
