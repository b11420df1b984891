//! Who leads until when, by the renewals that the seed took, and whether anybody deletes pods after that.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use testbed::api::{Record as Request, Source};
use tokio::time::Instant;

use crate::disturbances::Reading;
use crate::ledger::{Kind, Ledger};
use crate::pace::ELECTION;

/// A request may be read a moment after it was sent.
const WAY: Duration = Duration::from_millis(500);

/// The time that each replica has as the leader. Replicas are told apart by their users.
#[derive(Debug, Default)]
pub struct Fences(Mutex<HashMap<String, Renewal>>);

#[derive(Clone, Copy, Debug, Default)]
struct Renewal {
    /// A write to its Lease has arrived and is not applied yet.
    under_way: Option<Instant>,
    /// When the last one arrived that made it the leader.
    renewed: Option<Instant>,
}

impl Fences {
    /// A request arrives.
    pub fn request(&self, request: &Request, ledger: &Ledger, disturbances: Reading, now: Instant) {
        if !request.is_write() {
            return;
        }
        let mut fences = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if request.resource.starts_with("leases") {
            fences.entry(request.user.clone()).or_default().under_way = Some(now);
            return;
        }
        drop(fences);
        if request.resource == "pods"
            && let Some(told) = self.leaderless(&request.user, disturbances, now)
        {
            ledger.found(
                Kind::Leaderless,
                &request.namespace,
                format!("{told}: {} {}", request.method, request.path),
                Vec::new(),
            );
        }
    }

    /// How it is known that whoever writes now does not lead; none when it does.
    pub fn leaderless(&self, user: &str, disturbances: Reading, now: Instant) -> Option<String> {
        let fences = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(renewed) = fences.get(user).and_then(|renewal| renewal.renewed) else {
            return Some(format!("{user} writes and does not lead"));
        };
        let late = now - renewed;
        let over = late > ELECTION[1] + WAY + disturbances.lag;
        over.then(|| format!("{user} writes {:.2} s after its last renewal", late.as_secs_f64()))
    }

    /// Who leads now among the replicas whose names begin so.
    pub fn leader(&self, name: &str, now: Instant) -> Option<String> {
        let fences = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let leads = |user: &&String| {
            let renewed = fences.get(*user).and_then(|renewal| renewal.renewed);
            user.starts_with(name) && renewed.is_some_and(|renewed| now - renewed < ELECTION[1])
        };
        let latest = fences.keys().filter(leads).max_by_key(|user| fences.get(*user).and_then(|renewal| renewal.renewed));
        latest.cloned()
    }

    /// A Lease was written; whoever's request arrived last has written it.
    pub fn lease(&self, lease: &Value, source: Source) {
        if source != Source::Client {
            return;
        }
        let held = lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
        let mut fences = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = fences.values_mut().filter(|renewal| renewal.under_way.is_some()).max_by_key(|renewal| renewal.under_way);
        if let Some(renewal) = latest {
            let arrived = renewal.under_way.take();
            renewal.renewed = if held { arrived } else { None };
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::disturbances::Disturbances;

    fn request(user: &str, resource: &str) -> Request {
        Request { user: user.into(), resource: resource.into(), verb: "patch".into(), ..Request::default() }
    }

    #[test]
    fn a_deletion_is_found_after_the_leaders_time() {
        let (fences, now) = (Fences::default(), Instant::now());
        let ledger = Ledger::new(now);
        let disturbances = Disturbances::new(now).read(now);
        let write = |user: &str, after: f64| {
            let (before, now) = (ledger.total(Kind::Leaderless), now + Duration::from_secs_f64(after));
            fences.request(&request(user, "pods"), &ledger, disturbances, now);
            fences.request(&request(user, "deployments.apps"), &ledger, disturbances, now);
            let found = ledger.total(Kind::Leaderless) - before;
            assert_eq!(found == 1, fences.leaderless(user, disturbances, now).is_some());
            found
        };
        assert_eq!(write("a", 0.0), 1, "it never led");
        fences.request(&request("a", "leases.coordination.k8s.io"), &ledger, disturbances, now);
        assert_eq!(write("a", 0.0), 1, "its request is under way");
        fences.lease(&json!({"spec": {"holderIdentity": "x"}}), Source::Client);
        assert_eq!((write("a", 7.0), write("b", 1.0), write("a", 7.6)), (0, 1, 1));
        let leader = |name, after| fences.leader(name, now + Duration::from_secs(after));
        assert_eq!((leader("a", 6).as_deref(), leader("b", 6), leader("a", 8)), (Some("a"), None, None));
        fences.request(&request("a", "leases.coordination.k8s.io"), &ledger, disturbances, now + Duration::from_secs(8));
        fences.lease(&json!({"spec": {"holderIdentity": ""}}), Source::Client);
        assert_eq!(write("a", 8.1), 1, "it has given the Lease up");
    }
}
