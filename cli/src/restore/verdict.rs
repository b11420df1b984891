//! The verdicts that a restore rests on: those of the running prober, asked again while it goes on.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use prober::{Standing, describe_verdict};
use prober_core::verdict::Verdict;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::commands::SeedArgs;
use crate::leader;
use crate::output::{Progress, with_causes};
use crate::replicas::{ProberAnswer, ask, ask_at};

/// Time between two questions, as between two probes in an outage.
const INTERVAL: Duration = Duration::from_secs(2);
/// After so many questions in a row without an answer nothing is known any more.
const UNANSWERED: u32 = 3;

/// Reason why a verdict does not let a shoot be restored.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum NotUp {
    #[error("no prober says whether its nodes reach their API server ({0})")]
    Unanswered(String),
    #[error("{0}")]
    Said(String),
}

pub(crate) struct Verdicts {
    client: Client,
    args: SeedArgs,
    latest: watch::Sender<Latest>,
}

/// The latest answer, or the reason for which there is none.
type Latest = Arc<Result<ProberAnswer, String>>;

impl Verdicts {
    pub(crate) async fn ask(client: Client, args: &SeedArgs) -> Self {
        let progress = Progress::start("asking the prober ...");
        let latest = question(&client, args).await;
        drop(progress);
        Self {
            client,
            args: args.clone(),
            latest: watch::Sender::new(latest),
        }
    }

    /// Does some work, and asks again and again meanwhile.
    pub(crate) async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        let asking = async {
            loop {
                sleep(INTERVAL).await;
                let latest = question(&self.client, &self.args).await;
                self.latest.send_replace(latest);
            }
        };
        tokio::select! {
            done = work => done,
            () = asking => unreachable!("asks for ever"),
        }
    }

    /// Verdict of the prober, if that is that the nodes of a shoot reach their API server.
    pub(crate) fn of(&self, namespace: &str) -> Result<Verdict, NotUp> {
        let latest = Latest::clone(&self.latest.borrow());
        let answer = latest.as_ref().as_ref();
        let answer = answer.map_err(|error| NotUp::Unanswered(error.clone()))?;
        let said = |text: &str| NotUp::Said(text.to_owned());
        let mut shoots = answer.status.shoots.iter();
        let shoot = shoots.find(|shoot| shoot.namespace == namespace);
        let shoot = shoot.ok_or_else(|| said("the prober does not know this shoot"))?;
        if let Some(owner) = &shoot.owner
            && owner.standing != Standing::Ours
        {
            let sentence = owner.sentence();
            return Err(NotUp::Said(format!(
                "it is not known to be ours: {sentence}"
            )));
        }
        let probe = shoot.probe.as_ref();
        let probe = probe.ok_or_else(|| said("the prober does not probe it"))?;
        if let Some(failure) = &probe.failure {
            let message = &failure.message;
            return Err(NotUp::Said(format!(
                "the prober cannot probe it ({message})"
            )));
        }
        if probe.overdue {
            return Err(said("the prober's probe of it is overdue"));
        }
        let verdict = probe.verdict();
        let verdict = verdict.ok_or_else(|| said("the prober has not probed it yet"))?;
        match verdict.is_up() {
            true => Ok(verdict),
            false => Err(NotUp::Said(describe_verdict(verdict))),
        }
    }

    /// Waits until that is not the verdict any more; returns the reason.
    pub(crate) async fn until_not_up(&self, namespace: &str) -> String {
        let (mut latest, mut unanswered) = (self.latest.subscribe(), 0);
        loop {
            match self.of(namespace) {
                Ok(_) => unanswered = 0,
                Err(NotUp::Unanswered(_)) if unanswered + 1 < UNANSWERED => unanswered += 1,
                Err(why) => return why.to_string(),
            }
            if latest.changed().await.is_err() {
                return "nobody asks the prober any more".to_owned();
            }
        }
    }
}

async fn question(client: &Client, args: &SeedArgs) -> Latest {
    let answer = match &args.address {
        Some(address) => {
            let answer = ask_at(address).await;
            answer
                .map(|(_, answer)| answer)
                .map_err(|error| with_causes(error.as_ref()))
        }
        None => {
            let garden = &args.garden_namespace;
            let leader = leader::read(client, garden, leader::PROBER).await.holder;
            let (asked, answer) = ask(client, garden, leader.as_deref()).await;
            answer.ok_or_else(|| asked.problems.join("; "))
        }
    };
    Arc::new(answer)
}
