//! What is known to be wrong in chaos, until a cure.

/// What is new waits for a probe only to the ordering deadline of the probe by which the scaling began;
/// a later one may say that there is more time.
const LAPSES: &str = "a change lapses at the deadline by which the scaling began";
/// The marker of a write by the other replica, or of one that was cancelled and made all the same, is
/// seen seconds later: what is restored until then does not wait for renewals since.
const MARKED_LATE: &str = "restored in mid-outage: a marker is seen late";

/// Rows, lives of 600 in which something is wrong, and why. The numbers are exact: what makes one
/// better lowers it here.
#[rustfmt::skip]
pub const KNOWN: &[(&str, usize, &str)] = &[
    ("reloads", 1, LAPSES),
    ("half +8", 2, "restored in mid-outage: offsets are known to 1.8 s"),
    ("late, healthy, half -60", 27, "taken down at a start (D-21)"),
    ("lead flaps", 2, LAPSES),
    ("lead flaps, slow", 3, LAPSES),
    ("seed slow", 1, MARKED_LATE),
    ("seed slow, edits", 5, MARKED_LATE),
    ("away, half +60, half -8", 3, "taken down: half of the clocks are off (D-54)"),
    ("many dependents, all", 2, "restored in mid-outage, not looked into"),
    ("grace 50 s, +60, crashes", 10, "restored in mid-outage: after a start offsets are known to a gap between probes"),
    ("interval 1 s, all", 1, LAPSES),
    ("no initialDelay, +60, crashes", 1, "restored in mid-outage: after a start offsets are known to a gap between probes"),
    ("restores queue, probes fail", 9, "restored in mid-outage: a probe is recent for twice 5 s, and the next one hangs"),
];

/// Writes to 0 of a scaling that is held only for want of proof, though most leases are valid: all
/// rows together (D-73).
pub const KNOWN_IN_A_HOLD: usize = 1;
