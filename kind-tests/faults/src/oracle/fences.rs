//! Who leads until when, by the renewals that the seed took.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use testbed::api::Source;
use tokio::time::Instant;

use super::disturbances::Reading;
use crate::pace::ELECTION;

/// A request may be read a moment after it was sent.
const WAY: Duration = Duration::from_millis(500);

/// The time that each replica has as the leader. Replicas are told apart by their users.
#[derive(Debug, Default)]
pub struct Fences(HashMap<String, Renewal>);

#[derive(Clone, Copy, Debug, Default)]
struct Renewal {
    /// A write to its Lease has arrived and is not applied yet.
    under_way: Option<Instant>,
    /// When the last one arrived that made it the leader.
    renewed: Option<Instant>,
}

impl Fences {
    /// A write to a Lease has arrived.
    pub fn arrives(&mut self, user: &str, now: Instant) {
        self.0.entry(user.to_owned()).or_default().under_way = Some(now);
    }

    /// A Lease was written; whoever's request arrived last has written it.
    pub fn lease(&mut self, lease: &Value, source: Source) {
        if source != Source::Client {
            return;
        }
        let held = lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
        let latest = self.0.values_mut().filter(|renewal| renewal.under_way.is_some()).max_by_key(|renewal| renewal.under_way);
        if let Some(renewal) = latest {
            let arrived = renewal.under_way.take();
            renewal.renewed = if held { arrived } else { None };
        }
    }

    /// How it is known that whoever writes now does not lead; none when it does.
    pub fn leaderless(&self, user: &str, disturbances: Reading, now: Instant) -> Option<String> {
        let Some(renewed) = self.0.get(user).and_then(|renewal| renewal.renewed) else {
            return Some(format!("{user} writes and does not lead"));
        };
        let late = now - renewed;
        let over = late > ELECTION[1] + WAY + disturbances.lag;
        over.then(|| format!("{user} writes {:.2} s after its last renewal", late.as_secs_f64()))
    }

    /// Who leads now among the replicas whose names begin so.
    pub fn leader(&self, name: &str, now: Instant) -> Option<String> {
        let renewals = self.0.iter().filter(|(user, _)| user.starts_with(name));
        let led = renewals.filter_map(|(user, renewal)| Some((renewal.renewed?, user)));
        led.filter(|(renewed, _)| now - *renewed < ELECTION[1]).max().map(|(_, user)| user.clone())
    }
}
