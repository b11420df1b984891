//! What has happened in the play: what the audience is told, where the play is, and what the claims rest on.

use crate::scene::{DEPENDENTS, EXPIRED, GRACE, NEEDED, REPLICAS};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Told, and nothing else.
    Aside,
    /// A replica got the Lease.
    Leads,
    /// Every prober has looked at every shoot.
    Watched,
    Cut,
    Migrated,
    TakenDown,
    /// The leader was killed.
    Killed,
    /// Enough leases of the shoot that is cut off are expired.
    Verdict,
    /// A Deployment was scaled to 0, or above 0 again.
    Down,
    Up,
    /// The last pod of kube-controller-manager was gone.
    Resting,
    Healed,
    /// Enough nodes had renewed their leases again for the verdict to turn.
    EnoughBack,
    /// Everything was ready again and without annotations.
    Restored,
    /// It took too long.
    TimeUp,
}

pub struct Event {
    /// Seconds since the beginning.
    pub at: f64,
    pub what: What,
    /// The replica or Deployment to which it happened, if it is about one.
    pub whom: &'static str,
    pub text: String,
}

#[derive(Default)]
pub struct Record {
    /// Oldest first.
    pub events: Vec<Event>,
    /// When the nodes of the shoot that is cut off had renewed their leases last before that, oldest first.
    pub renewed: Vec<f64>,
    /// What the annotations said while the Deployments were held down.
    pub remembered: Vec<(&'static str, String)>,
}

impl Record {
    pub fn note(&mut self, at: f64, what: What, whom: &'static str, text: impl Into<String>) {
        self.events.push(Event { at, what, whom, text: text.into() });
    }

    /// Notes something when it is so for the first time.
    pub fn note_once(&mut self, at: f64, what: What, is_so: bool, text: impl Into<String>) {
        if is_so && !self.has(what) {
            self.note(at, what, "", text);
        }
    }

    /// All events of a kind.
    pub fn all(&self, what: What) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.what == what)
    }

    /// When something happened first.
    pub fn at(&self, what: What) -> Option<f64> {
        self.all(what).next().map(|event| event.at)
    }

    pub fn has(&self, what: What) -> bool {
        self.at(what).is_some()
    }

    /// When each of the Deployments was scaled first, in the order of [`DEPENDENTS`].
    pub fn scaled(&self, what: What) -> [Option<f64>; 3] {
        DEPENDENTS.map(|(name, _)| self.all(what).find(|event| event.whom == name).map(|event| event.at))
    }

    /// The replica that led to begin with, and the other one.
    pub fn leader(&self) -> &'static str {
        self.all(What::Leads).next().map_or("nobody", |event| event.whom)
    }

    pub fn other(&self) -> &'static str {
        if self.leader() == REPLICAS[0] { REPLICAS[1] } else { REPLICAS[0] }
    }

    /// When kube-controller-manager would have given up the first and the last node of the shoot that was cut off.
    pub fn first_end(&self) -> Option<f64> {
        self.renewed.first().map(|renewed| renewed + GRACE)
    }

    pub fn last_end(&self) -> Option<f64> {
        self.renewed.last().map(|renewed| renewed + GRACE)
    }

    /// When enough leases are expired for the verdict.
    pub fn verdict(&self) -> Option<f64> {
        self.renewed.get(NEEDED - 1).map(|renewed| renewed + EXPIRED)
    }
}
