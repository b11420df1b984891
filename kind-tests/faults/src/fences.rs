//! Who leads until when, by the renewals that the seed took.

use std::time::Duration;

use api_server::Record as Request;
use serde_json::Value;
use tokio::time::Instant;

/// A request may be read a moment after it was sent.
const WAY: Duration = Duration::from_millis(500);

/// The writes to the Leases in the order in which the seed took them: who sent each, when it
/// arrived, and whether its sender leads by it.
#[derive(Debug, Default)]
pub struct Fences(Vec<(String, Instant, bool)>);

impl Fences {
    /// A replica has written its Lease.
    pub fn lease(&mut self, lease: &Value, request: &Request, now: Instant) {
        let held = lease["spec"]["holderIdentity"]
            .as_str()
            .is_some_and(|holder| !holder.is_empty());
        self.0
            .push((request.user.clone(), request.at.unwrap_or(now), held));
    }

    /// How it is known that whoever wrote at this moment did not lead, which it does for so long
    /// after a renewal; none when it did.
    pub fn leaderless(&self, user: &str, deadline: Duration, at: Instant) -> Option<String> {
        let mut renewals = self.0.iter().rev();
        let last = renewals.find(|(writer, renewed, _)| writer == user && *renewed <= at);
        let last = last.map(|(_, renewed, held)| (at - *renewed, *held));
        match last {
            Some((age, true)) if age <= deadline + WAY => None,
            _ => Some(format!(
                "{user} does not lead, by its last renewal: {last:.2?}"
            )),
        }
    }
}
