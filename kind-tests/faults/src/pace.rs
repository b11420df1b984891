//! The times by which the soak goes: Gardener's, shortened so that minutes see hundreds of outages.

use std::time::Duration;

/// The shoots' `nodeMonitorGracePeriod`: leases expire after 6 s, and nodes renew every 2 s.
pub const GRACE: Duration = Duration::from_secs(8);
/// What a lease says of its duration; kubelets renew four times in it.
pub const LEASE_SECONDS: u64 = 8;
/// How often nodes renew.
pub const BEAT: Duration = Duration::from_secs(2);
/// The prober's initialDelay.
pub const INITIAL_DELAY: Duration = Duration::from_secs(2);
/// After this time without a renewal of the election's Lease a leader steps down.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(7);
/// After a process was disturbed it takes so long until somebody surely leads and has read
/// everything: the Lease's duration, a retry, a start. Restoring waits for that, and the weeder;
/// protecting does not (D-50).
pub const HAND_OVER: Duration = Duration::from_secs(13);
/// What a prober needs after its start, or after it was suspended, until it protects: a second to
/// start and to read the seed, the initial delay within which it probes first, and a beat and a
/// second until a silence counts (D-54).
pub const ON_GUARD: Duration = Duration::from_secs(6);
/// A replica that does not lead restores only after it has found the shoot well for so long (D-50).
pub const WELL: Duration = Duration::from_secs(60);
/// The weeder's watchDuration.
pub const WINDOW: Duration = Duration::from_secs(12);

/// From the moment from which complete answers can be had in an outage to the last write: a probe
/// under way that times out (2 s), the wait for the next (at most an interval of 2 s with its
/// jitter, 2.4 s), a beat and a second for leases that are not known yet (3 s), the levels (5 s),
/// and 2.6 s for a busy machine.
pub const DOWN_LIMIT: Duration = Duration::from_secs(15);
/// The same for the way back: three levels that wait up to 5 s for readiness, one after a delay of
/// 1 s, and twice, because a level's failure starts it again.
pub const UP_LIMIT: Duration = Duration::from_secs(40);
/// How old the probe may be that a write rests on: the longest wait between two probes (an
/// interval of 3 s with its jitter), and the probe itself.
pub const PROBE_AGE: Duration = Duration::from_secs(4);
/// The same for a process that was suspended: it probes again when its last probe is older than
/// probeTimeout (2 s) and 5 s.
pub const SUSPENDED_PROBE_AGE: Duration = Duration::from_secs(11);
/// The watchdog has ended its work for a shoot so long after it is asked to (D-14: 1 s), also on a
/// busy machine.
pub const STOP_DEADLINE: Duration = Duration::from_secs(2);
/// Outages that begin after so long without any disturbance are clean: nothing excuses a late
/// answer.
pub const CLEAN: Duration = Duration::from_secs(15);
/// How late a busy machine may let real processes run. On a paused clock none is late.
pub const LEEWAY: Duration = Duration::from_secs(3);
