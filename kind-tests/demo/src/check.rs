//! The summary: every claim with what was seen, and whether it holds.

use crate::facts::{Facts, Moment};
use crate::world::{CA, DEPENDENTS, Deployment, GRACE, KCM, MCM, NEEDED, NODES};

/// How long a replica that does not lead waits for the leader after its verdict, in seconds.
const PATIENCE: f64 = 1.5;
/// How far what is noted may be off, in seconds: a step of the story.
const STEP: f64 = 0.1;

/// One claim about the rescue.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub holds: bool,
    pub text: String,
}

/// All claims, in the order in which they are told.
pub fn claims(facts: &Facts) -> Vec<Claim> {
    vec![
        outage(facts),
        leader_killed(facts),
        stood_in(facts),
        told_of_the_leader(facts),
        scaled_down(facts),
        in_time(facts),
        memory(facts),
        nobody_given_up(facts),
        taken_over(facts),
        scaled_up(facts),
        restored(facts),
        healthy_untouched(facts),
        moving_left_alone(facts),
        rights(facts),
        ended(facts),
    ]
}

fn claim(holds: bool, text: String) -> Claim {
    Claim { holds, text }
}

fn seconds(at: Option<f64>) -> String {
    at.map_or_else(|| "never".to_owned(), |at| format!("at {at:.1}s"))
}

fn span(from: Option<f64>, to: Option<f64>) -> String {
    match (from, to) {
        (Some(from), Some(to)) => format!("{:.1}s", to - from),
        _ => "no time".to_owned(),
    }
}

fn at(moments: &[Moment], name: &str) -> Option<f64> {
    moments.iter().find(|moment| moment.name == name).map(|moment| moment.at)
}

fn told(moments: &[Moment]) -> String {
    if moments.is_empty() {
        return "nothing".to_owned();
    }
    moments.iter().map(|moment| format!("{} {:.1}s", moment.name, moment.at)).collect::<Vec<_>>().join(", ")
}

/// Whether each moment lies after the one before; one that is missing breaks the order.
fn ordered(moments: &[Option<f64>]) -> bool {
    moments.iter().all(Option::is_some) && moments.windows(2).all(|pair| pair[0] < pair[1])
}

fn outage(facts: &Facts) -> Claim {
    let real = ordered(&[facts.cut, facts.first_end, facts.last_end, facts.healed]);
    claim(
        real,
        format!(
            "The nodes of cut-off lost their way to the API server {} for {}: longer than the {GRACE:.0}s after which \
             kube-controller-manager gives nodes up, so all {NODES} would have been lost between {} and {}.",
            seconds(facts.cut),
            span(facts.cut, facts.healed),
            facts.first_end.map_or("?".into(), |end| format!("{end:.1}s")),
            facts.last_end.map_or("?".into(), |end| format!("{end:.1}s")),
        ),
    )
}

fn name(of: &Option<String>) -> &str {
    of.as_deref().unwrap_or("nobody")
}

fn leader_killed(facts: &Facts) -> Claim {
    let holds = ordered(&[facts.cut, facts.killed, facts.verdict]) && facts.leader.is_some() && facts.writes_of_leader == 0;
    claim(
        holds,
        format!(
            "The leader, {}, was killed {} into the outage, {} before {NEEDED} of {NODES} leases were expired, which is the verdict; \
             it had written to {} Deployments.",
            name(&facts.leader),
            span(facts.cut, facts.killed),
            span(facts.killed, facts.verdict),
            if facts.writes_of_leader == 0 { "no".to_owned() } else { facts.writes_of_leader.to_string() },
        ),
    )
}

fn stood_in(facts: &Facts) -> Claim {
    let first = facts.down.iter().map(|moment| moment.at).min_by(f64::total_cmp);
    let kcm = at(&facts.down, KCM);
    let patient = first.zip(facts.verdict).is_some_and(|(first, verdict)| first - verdict >= PATIENCE - STEP);
    let holds = patient
        && ordered(&[facts.killed, first, facts.first_end])
        && ordered(&[kcm, facts.first_end])
        && facts.leader.is_some()
        && facts.leader_at_rescue == facts.leader
        && facts.writes_of_other > 0;
    claim(
        holds,
        format!(
            "{} did not lead (the Lease still named {}). It left the leader {PATIENCE}s, acted {} after the verdict, and took \
             kube-controller-manager to 0 {} before the first node would have been given up.",
            name(&facts.other),
            name(&facts.leader_at_rescue),
            span(facts.verdict, first),
            span(kcm, facts.first_end)
        ),
    )
}

fn told_of_the_leader(facts: &Facts) -> Claim {
    let says = |resource: &str| {
        let names = |message: &&String| message.contains(&format!("/{resource}: The leader ({}_", name(&facts.leader)));
        facts.did_not_act.iter().filter(names).count() == 1
    };
    let holds = facts.did_not_act.len() == DEPENDENTS.len() && DEPENDENTS.iter().all(|(resource, _)| says(resource));
    claim(
        holds,
        format!(
            "Events with the reason LeaderDidNotAct name the leader, one for each Deployment: {}, for example \"{}\".",
            facts.did_not_act.len(),
            facts.did_not_act.last().map_or("", String::as_str)
        ),
    )
}

fn taken_over(facts: &Facts) -> Claim {
    let up = facts.up.iter().map(|moment| moment.at).min_by(f64::total_cmp);
    claim(
        ordered(&[facts.killed, facts.resting, facts.took_over, up]),
        format!(
            "{} became the leader {}, {} after the kill, when the dead leader's Lease had run out: too late to protect, in time to restore.",
            name(&facts.other),
            seconds(facts.took_over),
            span(facts.killed, facts.took_over)
        ),
    )
}

fn scaled_down(facts: &Facts) -> Claim {
    let [kcm, mcm, ca] = [KCM, MCM, CA].map(|name| at(&facts.down, name));
    let once = facts.down.len() == DEPENDENTS.len();
    let holds = once && ordered(&[facts.cut, mcm, kcm]) && ordered(&[facts.cut, ca, kcm]);
    claim(
        holds,
        format!("Scaled to 0, first those who replace machines, then the one who gives nodes up: {}.", told(&facts.down)),
    )
}

fn in_time(facts: &Facts) -> Claim {
    let holds = ordered(&[facts.resting, facts.first_end]);
    claim(
        holds,
        format!(
            "The last kube-controller-manager pod was gone {}, {} before the first node would have been given up.",
            seconds(facts.resting),
            span(facts.resting, facts.first_end)
        ),
    )
}

fn memory(facts: &Facts) -> Claim {
    let expected = |(name, replicas): &(&str, i64)| {
        facts.remembered.iter().any(|(seen, remembered)| seen == name && *remembered == replicas.to_string())
    };
    let holds = DEPENDENTS.iter().all(expected);
    let seen: Vec<String> = facts.remembered.iter().map(|(name, replicas)| format!("{name} {replicas}")).collect();
    claim(holds, format!("The replicas were remembered in annotations meanwhile: {}.", seen.join(", ")))
}

fn nobody_given_up(facts: &Facts) -> Claim {
    let holds = facts.given_up_cut_off == 0 && facts.given_up_healthy == 0;
    claim(holds, format!("Nodes marked Unknown: {} in cut-off, {} in healthy.", facts.given_up_cut_off, facts.given_up_healthy))
}

fn scaled_up(facts: &Facts) -> Claim {
    let [kcm, mcm, ca] = [KCM, MCM, CA].map(|name| at(&facts.up, name));
    let holds = facts.up.len() == DEPENDENTS.len() && ordered(&[facts.enough_back, kcm, mcm, ca]);
    claim(
        holds,
        format!(
            "The way was open again {}, 3 of {NODES} nodes were back {}; restored in order: {}.",
            seconds(facts.healed),
            seconds(facts.enough_back),
            told(&facts.up)
        ),
    )
}

fn restored(facts: &Facts) -> Claim {
    let as_before = |(name, replicas): &(&str, i64)| {
        let same = |one: &Deployment| one.name == *name && one.wanted == *replicas && one.ready == *replicas;
        facts.finally.iter().any(|one| same(one) && !one.held && one.remembered.is_none())
    };
    let holds = facts.restored.is_some() && DEPENDENTS.iter().all(as_before);
    let seen: Vec<String> = facts.finally.iter().map(|one| format!("{} {}/{}", one.name, one.ready, one.wanted)).collect();
    let left = facts.finally.iter().filter(|one| one.held || one.remembered.is_some()).count();
    claim(
        holds,
        format!(
            "All as before {}: {}; Deployments with annotations left behind: {left}.",
            seconds(facts.restored),
            seen.join(", ")
        ),
    )
}

fn healthy_untouched(facts: &Facts) -> Claim {
    let holds = facts.healthy_requests > 0 && facts.healthy_writes == 0;
    let minutes = facts.end / 60.0;
    claim(
        holds,
        format!(
            "The healthy shoot: {} requests in {minutes:.1} minutes over {} connection(s), writes {}.",
            facts.healthy_requests, facts.healthy_connections, facts.healthy_writes
        ),
    )
}

fn moving_left_alone(facts: &Facts) -> Claim {
    let bare = |one: &Deployment| one.wanted == 0 && !one.held && one.remembered.is_none();
    let holds = ordered(&[facts.cut, facts.migrated, facts.healed])
        && facts.moving_requests_before > 0
        && facts.moving_requests_after == 0
        && facts.moving_writes == 0
        && facts.moving_finally.len() == DEPENDENTS.len()
        && facts.moving_finally.iter().all(bare);
    claim(
        holds,
        format!(
            "The moving shoot was left alone from the moment of its migration ({}): {} requests before it, {} after it, {} writes. \
             Its control plane is being rebuilt in another seed; a watchdog that scaled it here, down in the outage or up after it, \
             would have worked against Gardener.",
            seconds(facts.migrated),
            facts.moving_requests_before,
            facts.moving_requests_after,
            facts.moving_writes
        ),
    )
}

fn rights(facts: &Facts) -> Claim {
    claim(
        facts.refusals == 0,
        format!(
            "With exactly the rights that Gardener grants: {} requests refused. The seed saw {} requests, {} of them writes to \
             Deployments and {} to the probers' own Lease and Events.",
            facts.refusals, facts.seed_requests, facts.scale_writes, facts.own_writes
        ),
    )
}

fn ended(facts: &Facts) -> Claim {
    let how = facts.exit_code.map_or_else(|| "it had to be killed".to_owned(), |code| format!("exit code {code}"));
    claim(facts.exit_code == Some(0), format!("Asked to end, {} ended in time: {how}.", name(&facts.other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(name: &str, at: f64) -> Moment {
        Moment { at, name: name.to_owned() }
    }

    fn deployment(name: &str, replicas: i64) -> Deployment {
        Deployment { name: name.to_owned(), wanted: replicas, ready: replicas, remembered: None, held: false }
    }

    fn did_not_act(resource: &str, leader: &str) -> String {
        format!(
            "Deployment shoot--demo--cut-off/{resource}: The leader ({leader}_0a1b) did not act: taken to 0 by a replica that does not lead"
        )
    }

    fn good() -> Facts {
        Facts {
            cut: Some(12.0),
            first_end: Some(43.0),
            last_end: Some(51.5),
            leader: Some("prober-a".into()),
            other: Some("prober-b".into()),
            killed: Some(33.5),
            verdict: Some(35.5),
            leader_at_rescue: Some("prober-a".into()),
            took_over: Some(47.0),
            writes_of_other: 6,
            did_not_act: DEPENDENTS.iter().map(|(name, _)| did_not_act(name, "prober-a")).collect(),
            down: vec![moment(MCM, 37.0), moment(CA, 37.0), moment(KCM, 38.7)],
            remembered: DEPENDENTS.iter().map(|(name, replicas)| ((*name).to_owned(), replicas.to_string())).collect(),
            resting: Some(40.2),
            healed: Some(58.0),
            enough_back: Some(63.0),
            up: vec![moment(KCM, 68.0), moment(MCM, 79.6), moment(CA, 81.2)],
            restored: Some(82.7),
            end: 85.0,
            finally: DEPENDENTS.iter().map(|(name, replicas)| deployment(name, *replicas)).collect(),
            migrated: Some(24.0),
            moving_requests_before: 3,
            moving_finally: DEPENDENTS.iter().map(|(name, _)| deployment(name, 0)).collect(),
            healthy_requests: 6,
            healthy_connections: 1,
            exit_code: Some(0),
            ..Facts::default()
        }
    }

    /// How many claims break when the facts are changed.
    fn broken(change: impl FnOnce(&mut Facts)) -> usize {
        let mut facts = good();
        change(&mut facts);
        claims(&facts).iter().filter(|claim| !claim.holds).count()
    }

    #[test]
    fn a_good_rescue_holds_every_claim() {
        assert_eq!(claims(&good()).iter().find(|claim| !claim.holds), None);
    }

    #[test]
    fn nothing_happened_breaks_most_claims() {
        let holding: Vec<Claim> = claims(&Facts::default()).into_iter().filter(|claim| claim.holds).collect();
        assert_eq!(holding.len(), 2, "only that nobody was given up and nothing refused: {holding:?}");
    }

    #[test]
    fn every_flaw_breaks_its_claim() {
        assert_eq!(broken(|facts| facts.healed = Some(50.0)), 1, "an outage too short to prove anything");
        assert_eq!(broken(|facts| facts.killed = Some(36.0)), 1, "killed when it should have acted already");
        assert_eq!(broken(|facts| facts.writes_of_leader = 1), 1, "the leader had acted");
        assert_eq!(broken(|facts| facts.verdict = Some(36.5)), 1, "it did not wait for the leader");
        assert_eq!(broken(|facts| facts.leader_at_rescue = Some("prober-b".into())), 1, "the other one led already");
        assert_eq!(broken(|facts| facts.writes_of_other = 0), 1, "somebody else wrote");
        assert_eq!(broken(|facts| facts.did_not_act.clear()), 1, "no Event");
        assert_eq!(broken(|facts| facts.did_not_act[0] = did_not_act(KCM, "prober-b")), 1, "an Event that names another");
        assert_eq!(broken(|facts| facts.took_over = None), 1, "nobody leads any more");
        assert_eq!(broken(|facts| facts.took_over = Some(39.0)), 1, "a new leader in time proves nothing");
        assert_eq!(broken(|facts| facts.down[1].at = 39.0), 1, "scaled down in the wrong order");
        assert_eq!(broken(|facts| facts.down.push(moment(KCM, 60.0))), 1, "scaled down twice");
        assert_eq!(broken(|facts| facts.resting = Some(43.5)), 1, "too late");
        assert_eq!(broken(|facts| facts.remembered[0].1 = "1".into()), 1, "a wrong memory");
        assert_eq!(broken(|facts| facts.given_up_cut_off = 1), 1, "a node given up");
        assert_eq!(broken(|facts| facts.up.swap(1, 2)), 0, "the list's own order does not matter, the times do");
        assert_eq!(broken(|facts| facts.up[2].at = 70.0), 1, "scaled up in the wrong order");
        assert_eq!(broken(|facts| facts.up[0].at = 60.0), 1, "scaled up before the nodes were back");
        assert_eq!(broken(|facts| facts.finally[0].held = true), 1, "a marker left behind");
        assert_eq!(broken(|facts| facts.finally[1].remembered = Some("1".into())), 1, "a memory left behind");
        assert_eq!(broken(|facts| facts.healthy_writes = 1), 1);
        assert_eq!(broken(|facts| facts.healthy_requests = 0), 1, "never looked at");
        assert_eq!(broken(|facts| facts.moving_requests_after = 1), 1);
        assert_eq!(broken(|facts| facts.moving_finally[0].wanted = 2), 1, "brought up against Gardener");
        assert_eq!(broken(|facts| facts.refusals = 1), 1);
        assert_eq!(broken(|facts| facts.exit_code = None), 1);
    }
}
