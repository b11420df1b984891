//! The summary: every claim with what was seen, and whether it holds.

use crate::facts::{Facts, Moment};
use crate::world::{CA, DEPENDENTS, Deployment, GRACE, KCM, MCM, NODES};

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
        scaled_down(facts),
        in_time(facts),
        memory(facts),
        nobody_given_up(facts),
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
             Deployments and {} to the prober's own Lease and Events.",
            facts.refusals, facts.seed_requests, facts.scale_writes, facts.own_writes
        ),
    )
}

fn ended(facts: &Facts) -> Claim {
    let how = facts.exit_code.map_or_else(|| "it had to be killed".to_owned(), |code| format!("exit code {code}"));
    claim(facts.exit_code == Some(0), format!("Asked to end, the prober ended in time: {how}."))
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

    fn good() -> Facts {
        Facts {
            cut: Some(12.0),
            first_end: Some(43.0),
            last_end: Some(51.5),
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
