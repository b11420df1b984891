//! The summary: every claim with what was seen, and whether it holds.

use crate::record::DemoRecord;

/// How wide the summary is printed.
const WIDTH: usize = 100;

/// What must be so ([`DemoRecord::holds`]) for a claim, and what it says
/// ([`DemoRecord::filled_in`]).
const CLAIMS: [(&str, &str); 14] = [
    // The leader was killed, and the other replica saved the nodes in its place.
    (
        "cut < first end < last end < healed",
        "cut-off's {nodes} nodes were cut off for {cut..healed}: the first would have been lost {at first end}, all \
         {at last end}.",
    ),
    (
        "cut < killed < verdict, writes of the leader = 0",
        "{leader} led, was killed {killed..verdict} before {needed} of {nodes} leases expired, and made \
         {writes of the leader} writes.",
    ),
    (
        "patience over < down < first end, killed < down, KCM down < first end, KCM down < took over, \
         0 < writes of the other",
        "{other} did not lead (the Lease still named {led then}). It left the leader {patience}s, acted {verdict..down} after \
         the verdict, and took kube-controller-manager to 0, {KCM down..first end} before the first node would have been lost.",
    ),
    (
        "Events = 3",
        "Events with the reason LeaderDidNotAct, which name the leader: {Events}, as in \"{Event}\".",
    ),
    (
        "times down = 3, cut < MCM down < KCM down, cut < CA down < KCM down",
        "Scaled to 0, first who replaces machines, then who marks nodes Unknown: machine-controller-manager {..MCM down}, \
         cluster-autoscaler {..CA down}, kube-controller-manager {..KCM down}.",
    ),
    (
        "resting < first end",
        "The last pod of kube-controller-manager was gone {resting..first end} before the first node would have been lost.",
    ),
    (
        "KCM memory = 2, MCM memory = 1, CA memory = 1",
        "The replicas were remembered in annotations: machine-controller-manager {MCM memory}, cluster-autoscaler {CA memory}, \
         kube-controller-manager {KCM memory}.",
    ),
    (
        "Unknown in cut-off = 0, Unknown in healthy = 0",
        "Nodes marked Unknown, whose pods would have left every Service: {Unknown in cut-off} in cut-off, {Unknown in healthy} in healthy.",
    ),
    // All came back, in order.
    (
        "killed < resting < took over < up",
        "{other} became the leader {killed..took over} after the kill: too late to protect, in time to restore.",
    ),
    (
        "times up = 3, enough back < KCM up < MCM up < CA up",
        "{needed} of {nodes} nodes were back {at enough back}; restored in order: kube-controller-manager {..KCM up}, \
         machine-controller-manager {..MCM up}, cluster-autoscaler {..CA up}.",
    ),
    (
        "0 < restored, whole = 1",
        "All as before {at restored}: {states}.",
    ),
    // Nothing was touched that was not to be.
    (
        "0 < requests to healthy, writes to healthy = 0",
        "The healthy shoot: {requests to healthy} requests in {minutes} minutes, {writes to healthy} writes.",
    ),
    (
        "refusals = 0",
        "With exactly the rights that Gardener grants: {refusals} requests refused.",
    ),
    (
        "exit code = 0",
        "Asked to end, {other} ended in time: exit code {exit code}.",
    ),
];

/// Whether each claim holds, and what it says, with what was seen.
pub fn claims(record: &DemoRecord) -> Vec<(bool, String)> {
    CLAIMS
        .iter()
        .map(|(orders, text)| (record.holds(orders), record.filled_in(text)))
        .collect()
}

/// The claims as they are printed, and what follows from them.
pub fn summary(claims: &[(bool, String)]) -> String {
    let mut text = "\nWhat happened\n".to_owned();
    for (holds, claim) in claims {
        let verdict = if *holds { "ok    " } else { "FAILED" };
        text += &format!("  {verdict} {}\n", wrapped(claim).join("\n         "));
    }
    text + &match claims.iter().filter(|(holds, _)| !holds).count() {
        0 => "\nThe rescue worked, without the leader: no node became Unknown, no endpoint lost, no machine replaced.\n".to_owned(),
        failed => format!("\nThe rescue did NOT work: {failed} of {} checks failed.\n", claims.len()),
    }
}

/// Text broken at spaces into lines.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= WIDTH => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
