//! What was seen during the play, with seconds since its beginning: the material of the summary.

use crate::world::Deployment;

/// Something that happened to a Deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    pub at: f64,
    pub name: String,
}

/// All that the checks need. Times are seconds since the start; `None` means it did not happen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    pub cut: Option<f64>,
    /// When kube-controller-manager would have given up the first and the last node of the shoot that was cut off.
    pub first_end: Option<f64>,
    pub last_end: Option<f64>,
    /// The replica that led to begin with, and the other one.
    pub leader: Option<String>,
    pub other: Option<String>,
    /// The leader was killed.
    pub killed: Option<f64>,
    /// Enough leases of the shoot that was cut off are expired for the verdict.
    pub verdict: Option<f64>,
    /// Whom the Lease named when kube-controller-manager was scaled to 0.
    pub leader_at_rescue: Option<String>,
    /// The other replica became the leader.
    pub took_over: Option<f64>,
    /// Writes to Deployments by the one that was killed, and by the other one.
    pub writes_of_leader: usize,
    pub writes_of_other: usize,
    /// The Events that say that a leader did not act.
    pub did_not_act: Vec<String>,
    /// Scaled to 0, in order.
    pub down: Vec<Moment>,
    /// What the annotations said while they were held down.
    pub remembered: Vec<(String, String)>,
    /// The last pod of kube-controller-manager was gone.
    pub resting: Option<f64>,
    pub healed: Option<f64>,
    /// Enough nodes had renewed their leases again for the verdict to turn.
    pub enough_back: Option<f64>,
    /// Scaled above 0, in order.
    pub up: Vec<Moment>,
    /// Everything was ready again and without annotations.
    pub restored: Option<f64>,
    pub end: f64,
    /// The shoot that was cut off, at the end.
    pub finally: Vec<Deployment>,
    pub given_up_cut_off: usize,
    pub given_up_healthy: usize,
    pub migrated: Option<f64>,
    /// Requests to the migrated shoot before the migration, and from one second after it on.
    pub moving_requests_before: usize,
    pub moving_requests_after: usize,
    /// Writes of the probers in the migrated shoot's namespace.
    pub moving_writes: usize,
    pub moving_finally: Vec<Deployment>,
    pub healthy_requests: u64,
    pub healthy_connections: u64,
    /// Writes to the healthy shoot or in its namespace.
    pub healthy_writes: u64,
    /// Requests that an API server refused for want of rights.
    pub refusals: usize,
    pub seed_requests: u64,
    /// Writes to Deployments.
    pub scale_writes: usize,
    /// Writes to the probers' own Lease and Events.
    pub own_writes: usize,
    /// How the other replica ended when it was asked to: its exit code, or `None` if it had to be killed.
    pub exit_code: Option<i32>,
}
