//! The verdicts that a restore rests on: those of the running prober, asked again while it goes on.

use std::convert::Infallible;
use std::time::Duration;

use kube::Client;
use prober::{ProbeStatus, ShootEntry, Standing, describe_verdict};
use prober_core::verdict::Verdict;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::commands::SeedArgs;
use crate::replicas::{ProberAnswer, ask};

/// Time between two questions, as between two probes in an outage.
const INTERVAL: Duration = Duration::from_secs(2);
/// Number of questions in a row without a verdict after which nothing is known any more: a single
/// probe that fails says nothing of the nodes.
const UNANSWERED: u32 = 3;
/// Age of a verdict from which on it says nothing: probes are at most 16.4 s apart, and 5 s while
/// anything is held down.
const OUTDATED_S: i64 = 20;

pub(crate) struct Verdicts {
    client: Client,
    args: SeedArgs,
    latest: watch::Sender<Latest>,
}

/// The latest answer, or the reason for which there is none.
type Latest = Result<ProberAnswer, String>;

impl Verdicts {
    pub(crate) async fn ask(client: Client, args: &SeedArgs) -> Self {
        let latest = question(&client, args).await;
        Self {
            client,
            args: args.clone(),
            latest: watch::Sender::new(latest),
        }
    }

    /// Does some work, and asks again and again meanwhile.
    pub(crate) async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            never = self.ask_on() => match never {},
        }
    }

    async fn ask_on(&self) -> Infallible {
        loop {
            sleep(INTERVAL).await;
            let latest = question(&self.client, &self.args).await;
            drop(self.latest.send_replace(latest));
        }
    }

    /// Verdict of the prober, if that is that the nodes of a shoot reach their API server; or else
    /// the reason why it does not let the shoot be restored.
    pub(crate) fn of(&self, namespace: &str) -> Result<Verdict, String> {
        let latest = self.latest.borrow();
        let answer = latest.as_ref().map_err(|error| {
            format!("no prober says whether its nodes reach their API server ({error})")
        })?;
        let shoot = find(answer, namespace).ok_or("the prober does not know this shoot")?;
        if let Some(owner) = &shoot.owner
            && owner.standing != Standing::Ours
        {
            return Err(format!("it is not known to be ours: {}", owner.sentence()));
        }
        let probe = shoot.probe.as_ref().ok_or("the prober does not probe it")?;
        if let Some(failure) = &probe.failure {
            return Err(format!("the prober cannot probe it ({})", failure.message));
        }
        match probe.verdict() {
            _ if probe.overdue => Err("the prober's probe of it is overdue".to_owned()),
            None => Err("the prober has not probed it yet".to_owned()),
            _ if is_outdated(probe) => Err("the prober's last verdict on it is old".to_owned()),
            Some(verdict) if verdict.is_up() => Ok(verdict),
            Some(verdict) => Err(describe_verdict(verdict)),
        }
    }

    /// Waits until that is not the verdict any more; returns the reason.
    pub(crate) async fn until_not_up(&self, namespace: &str) -> String {
        let (mut latest, mut unanswered) = (self.latest.subscribe(), 0);
        let fails = |answer: &ProberAnswer| {
            let probe = find(answer, namespace).and_then(|shoot| shoot.probe.as_ref());
            probe.is_some_and(|probe| probe.failure.is_some())
        };
        loop {
            let is_unanswered = latest.borrow_and_update().as_ref().ok().is_none_or(fails);
            unanswered = if is_unanswered { unanswered + 1 } else { 0 };
            match self.of(namespace) {
                Err(why) if !is_unanswered || unanswered >= UNANSWERED => return why,
                _ => {}
            }
            if latest.changed().await.is_err() {
                return "nobody asks the prober any more".to_owned();
            }
        }
    }
}

fn find<'a>(answer: &'a ProberAnswer, namespace: &str) -> Option<&'a ShootEntry> {
    let mut shoots = answer.status.shoots.iter();
    shoots.find(|shoot| shoot.namespace == namespace)
}

fn is_outdated(probe: &ProbeStatus) -> bool {
    let found = probe.found.as_ref();
    found.is_none_or(|found| found.seconds_ago > OUTDATED_S)
}

async fn question(client: &Client, args: &SeedArgs) -> Latest {
    let (asked, answer) = ask(Some(client), args).await;
    answer.ok_or_else(|| asked.problems.join("; "))
}
