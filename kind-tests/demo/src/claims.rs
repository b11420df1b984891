//! The summary: every claim with what was seen, and whether it holds.

use crate::record::DemoRecord;

/// How wide the summary is printed.
const WIDTH: usize = 100;

/// What must be so ([`DemoRecord::holds`]) for a claim, and what it says
/// ([`DemoRecord::filled_in`]).
const CLAIMS: [(&str, &str); 15] = [
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
        "Events = 3, Events of KCM = 1, Events of MCM = 1, Events of CA = 1",
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
        "cut < migrated < healed, 0 < requests before, requests after = 0, writes to moving = 0, moving at 0 = 3",
        "The moving shoot was left alone: {requests before} requests before it moved, {requests after} after, \
         {writes to moving} writes.",
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The facts of a good rescue.
    const GOOD: &str = "nodes 5, needed 3, patience 1.5, cut 12, migrated 24, killed 33.5, verdict 35.5, patience over 36.9, \
        down 37, MCM down 37, CA down 37, KCM down 38.7, times down 3, KCM memory 2, MCM memory 1, CA memory 1, resting 40.2, \
        first end 43, took over 47, last end 51.5, healed 58, enough back 63, up 68, KCM up 68, MCM up 79.6, CA up 81.2, \
        times up 3, restored 82.7, whole 1, Unknown in cut-off 0, Unknown in healthy 0, writes of the leader 0, \
        writes of the other 6, Events 3, Events of KCM 1, Events of MCM 1, Events of CA 1, requests to healthy 6, \
        writes to healthy 0, requests before 3, requests after 0, writes to moving 0, moving at 0 3, refusals 0, exit code 0";

    /// What is wrong with a rescue, the fact that shows it, and the claims that then do not hold.
    const FLAWS: &str = "\
        an outage too short to prove anything | healed 50 | 1
        killed when it should have acted already | killed 36 | 2
        the leader had acted | writes of the leader 1 | 2
        it did not wait for the leader | down 36.8 | 3
        whoever leads already does not stand in | took over 38 | 3, 9
        somebody else wrote | writes of the other 0 | 3
        an Event too many | Events 4 | 4
        no Event that names the leader | Events of MCM 0 | 4
        scaled down in the wrong order | CA down 39 | 5
        scaled down twice | times down 4 | 5
        too late | resting 43.5 | 6
        a wrong memory | KCM memory 1 | 7
        a node marked Unknown | Unknown in cut-off 1 | 8
        a healthy node marked Unknown | Unknown in healthy 1 | 8
        nobody leads any more | took over NaN | 3, 9
        a new leader in time proves nothing | took over 39 | 9
        scaled up in the wrong order | CA up 70 | 10
        scaled up before the nodes were back | KCM up 60 | 10
        a marker or memory left behind | whole 0 | 11
        healthy written to | writes to healthy 1 | 12
        healthy never probed | requests to healthy 0 | 12
        moving probed after its migration | requests after 1 | 13
        moving written to | writes to moving 1 | 13
        moving brought up against Gardener | moving at 0 2 | 13
        a request refused | refusals 1 | 14
        an end that had to be forced | exit code NaN | 15";

    fn fact(text: &str) -> (String, f64) {
        let (name, number) = text.rsplit_once(' ').expect("a fact");
        (name.to_owned(), number.parse().expect("a number"))
    }

    /// The claims of a good rescue but for this, and the places of those that do not hold.
    fn checked(flaw: Option<&str>) -> (String, String) {
        let words = ["leader", "other", "led then", "Event", "states", "minutes"];
        let record = DemoRecord {
            numbers: GOOD.split(", ").chain(flaw).map(fact).collect(),
            words: words.map(|name| (name, "prober-a".to_owned())).into(),
            ..DemoRecord::default()
        };
        let claims = claims(&record);
        let broken = (1..).zip(&claims).filter(|(_, (holds, _))| !holds);
        let broken: Vec<_> = broken.map(|(place, _)| place.to_string()).collect();
        (summary(&claims), broken.join(", "))
    }

    #[test]
    fn a_good_rescue_holds_every_claim() {
        let (text, broken) = checked(None);
        assert_eq!(broken, "");
        let unknown = ["unknown", "never", "no time"];
        assert!(!unknown.iter().any(|word| text.contains(word)), "{text}");
        let wrapped = "  ok     prober-a led, was killed 2.0s before 3 of 5 leases expired, and made 0 writes.\n  ok     prober-a did";
        assert!(
            text.contains(wrapped) && text.contains("The rescue worked"),
            "{text}"
        );
        let orders = "3 of 5 nodes were back at 63.0s; restored in order: kube-controller-manager 68.0s,\n         machine";
        assert!(text.contains(orders), "{text}");
    }

    #[test]
    fn every_flaw_breaks_its_claims() {
        for flaw in FLAWS.lines() {
            let [what, fact, expected] = flaw.split(" | ").collect::<Vec<_>>()[..] else {
                unreachable!("{flaw}");
            };
            let (text, broken) = checked(Some(fact));
            assert_eq!(broken, expected, "{what}");
            let count = format!("{} of 15 checks failed", broken.split(", ").count());
            assert!(text.contains(&count), "{text}");
        }
        let broken = claims(&DemoRecord::default());
        assert!(broken.iter().all(|(holds, _)| !holds), "nothing happened");
    }
}
