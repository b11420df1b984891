//! Who wrote to shoots' Deployments, and whether it led, by the seed's audit log. No input and no
//! output here.

use anyhow::Result;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use testbed::audit::Asked;
use testbed::gardener::{GARDEN, PROBER_USER};

/// Who wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenBy {
    /// The replica's name; empty where there is only the prober.
    pub replica: String,
    /// Whether it was the one that had last written the election's Lease.
    pub leads: bool,
}

/// A successful write to a Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentWrite {
    pub namespace: String,
    pub name: String,
    pub by: WrittenBy,
    /// When it was answered.
    pub answered: DateTime<Utc>,
}

/// The name behind the prober's own in the user's.
fn replica_of(user: &str) -> Option<&str> {
    let rest = user.strip_prefix(PROBER_USER)?;
    Some(rest.strip_prefix('-').unwrap_or(rest))
}

fn succeeded(asked: &Asked, verbs: [&str; 2]) -> bool {
    asked.stage == "ResponseComplete"
        && (200..300).contains(&asked.code)
        && verbs.contains(&asked.verb.as_str())
}

fn takes_lead(asked: &Asked) -> bool {
    asked.namespace == GARDEN
        && asked.resource == "leases"
        && succeeded(asked, ["create", "update"])
}

/// All writes of replicas to Deployments, in order.
pub fn writes(log: &[Asked]) -> Result<Vec<DeploymentWrite>> {
    let (mut leader, mut writes) = (None, Vec::new());
    for asked in log {
        let Some(replica) = replica_of(&asked.user) else {
            continue;
        };
        if takes_lead(asked) {
            leader = Some(replica);
        } else if asked.resource.starts_with("deployments") && succeeded(asked, ["patch", "update"])
        {
            writes.push(DeploymentWrite {
                namespace: asked.namespace.clone(),
                name: asked.name.clone(),
                by: WrittenBy {
                    replica: replica.to_owned(),
                    leads: leader == Some(replica),
                },
                answered: asked.answered.parse()?,
            });
        }
    }
    writes.sort_by_key(|write| write.answered);
    Ok(writes)
}

/// Who wrote the election's Lease, and when, in order.
pub fn elections(log: &[Asked]) -> Result<Vec<(String, DateTime<Utc>)>> {
    let all = log.iter().filter(|asked| takes_lead(asked));
    all.filter_map(|asked| Some((replica_of(&asked.user)?, asked)))
        .map(|(replica, asked)| Ok((replica.to_owned(), asked.answered.parse()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wrote_the_lease_last_leads() {
        let asked = |replica: &str, verb: &str, resource: &str, code| Asked {
            stage: "ResponseComplete".into(),
            user: format!("{PROBER_USER}-{replica}"),
            verb: verb.into(),
            uri: String::new(),
            resource: resource.into(),
            namespace: GARDEN.into(),
            name: "kube-controller-manager".into(),
            code,
            at: String::new(),
            answered: "2026-01-01T00:00:01.000000Z".into(),
        };
        let write = |replica| asked(replica, "patch", "deployments", 200);
        let mut log = vec![
            write("a"),
            asked("a", "update", "leases", 200),
            write("a"),
            asked("b", "update", "leases", 409),
            write("b"),
            asked("b", "update", "leases", 200),
            write("b"),
            write("a"),
            // None of these is a write to a Deployment that a replica made.
            asked("a", "patch", "deployments", 409),
            asked("a", "get", "deployments", 200),
            asked("a", "patch", "events", 200),
            write("a"),
            write("a"),
        ];
        log[11].stage = "ResponseStarted".into();
        log[12].user = "somebody".into();
        let by = |write: DeploymentWrite| (write.by.replica, write.by.leads);
        let writers: Vec<_> = writes(&log).unwrap().into_iter().map(by).collect();
        let expected = [
            ("a", false),
            ("a", true),
            ("b", false),
            ("b", true),
            ("a", false),
        ];
        assert_eq!(
            writers,
            expected.map(|(name, leads)| (name.to_owned(), leads))
        );
        let leaders = elections(&log).unwrap().into_iter();
        assert_eq!(
            leaders.map(|(name, _)| name).collect::<Vec<_>>(),
            ["a", "b"]
        );
    }
}
