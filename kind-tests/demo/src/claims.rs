//! The summary: every claim with what was seen, and whether it holds.

use crate::record::{Event, Record, What};
use crate::scene::Scene;
use crate::tally::Tally;
use crate::world::{CA, DEPENDENTS, GRACE, KCM, MCM, NEEDED, NODES};

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

/// All claims, in the order in which they are told. The scene is the last one.
pub fn claims(record: &Record, scene: &Scene, tally: &Tally) -> Vec<Claim> {
    let [cut_off, moving, healthy] = &scene.shoots;
    let (leader, other) = (record.leader().unwrap_or("nobody"), record.other().unwrap_or("nobody"));
    let [cut, killed, resting, healed] = [What::Cut, What::Killed, What::Resting, What::Healed].map(|what| record.at(what));
    let [enough_back, restored, migrated] = [What::EnoughBack, What::Restored, What::Migrated].map(|what| record.at(what));
    let (first_end, last_end, verdict) = (record.first_end(), record.last_end(), record.verdict());
    let scaled = |what, name| record.all(what).find(|event| event.whom == name).map(|event| event.at);
    let [down_kcm, down_mcm, down_ca] = [KCM, MCM, CA].map(|name| scaled(What::Down, name));
    let [up_kcm, up_mcm, up_ca] = [KCM, MCM, CA].map(|name| scaled(What::Up, name));
    let (first_down, took_over) = (record.at(What::Down), record.all(What::Leads).nth(1).map(|event| event.at));
    let until_rescue = |event: &&Event| down_kcm.is_some_and(|down| event.at <= down);
    let leader_at_rescue = record.all(What::Leads).take_while(until_rescue).last().map_or("nobody", |event| event.whom);
    let all = |what| record.all(what).count() == DEPENDENTS.len();
    let names_leader = |resource: &str| {
        let names = |message: &&String| message.contains(&format!("/{resource}: The leader ({leader}_"));
        tally.did_not_act.iter().filter(names).count() == 1
    };
    let was_remembered = |(name, replicas): &(&str, i64)| {
        record.remembered.iter().any(|(seen, memory)| seen == name && *memory == replicas.to_string())
    };
    let left_behind = cut_off.dependents.iter().filter(|one| one.marker.is_some() || one.memory.is_some()).count();
    let seen_finally = cut_off.deployments().map(|(name, _, one)| format!("{name} {}/{}", one.ready, one.replicas));

    let claim = |holds: bool, text: String| Claim { holds, text };
    vec![
        claim(
            ordered([cut, first_end, last_end, healed]),
            format!(
                "The nodes of cut-off lost their way to the API server {} for {}: longer than the {GRACE:.0}s after which \
                 kube-controller-manager gives nodes up, so all {NODES} would have been lost between {} and {}.",
                when(cut),
                span(cut, healed),
                span(Some(0.0), first_end),
                span(Some(0.0), last_end),
            ),
        ),
        claim(
            ordered([cut, killed, verdict]) && record.leader().is_some() && tally.writes_of_leader == 0,
            format!(
                "The leader, {leader}, was killed {} into the outage, {} before {NEEDED} of {NODES} leases were expired, which is the \
                 verdict; it had written to {} Deployments.",
                span(cut, killed),
                span(killed, verdict),
                if tally.writes_of_leader == 0 { "no".to_owned() } else { tally.writes_of_leader.to_string() },
            ),
        ),
        claim(
            first_down.zip(verdict).is_some_and(|(first, verdict)| first - verdict >= PATIENCE - STEP)
                && ordered([killed, first_down, first_end])
                && ordered([down_kcm, first_end])
                && record.leader() == Some(leader_at_rescue)
                && tally.writes_of_other > 0,
            format!(
                "{other} did not lead (the Lease still named {leader_at_rescue}). It left the leader {PATIENCE}s, acted {} after the \
                 verdict, and took kube-controller-manager to 0 {} before the first node would have been given up.",
                span(verdict, first_down),
                span(down_kcm, first_end)
            ),
        ),
        claim(
            tally.did_not_act.len() == DEPENDENTS.len() && DEPENDENTS.iter().all(|(resource, _)| names_leader(resource)),
            format!(
                "Events with the reason LeaderDidNotAct name the leader, one for each Deployment: {}, for example \"{}\".",
                tally.did_not_act.len(),
                tally.did_not_act.last().map_or("", String::as_str)
            ),
        ),
        claim(
            all(What::Down) && ordered([cut, down_mcm, down_kcm]) && ordered([cut, down_ca, down_kcm]),
            format!(
                "Scaled to 0, first those who replace machines, then the one who gives nodes up: {}.",
                times(record.all(What::Down))
            ),
        ),
        claim(
            ordered([resting, first_end]),
            format!(
                "The last kube-controller-manager pod was gone {}, {} before the first node would have been given up.",
                when(resting),
                span(resting, first_end)
            ),
        ),
        claim(
            DEPENDENTS.iter().all(was_remembered),
            format!(
                "The replicas were remembered in annotations meanwhile: {}.",
                listed(record.remembered.iter().map(|(name, memory)| format!("{name} {memory}")))
            ),
        ),
        claim(
            cut_off.given_up == 0 && healthy.given_up == 0,
            format!("Nodes marked Unknown: {} in cut-off, {} in healthy.", cut_off.given_up, healthy.given_up),
        ),
        claim(
            ordered([killed, resting, took_over, record.at(What::Up)]),
            format!(
                "{other} became the leader {}, {} after the kill, when the dead leader's Lease had run out: too late to protect, in \
                 time to restore.",
                when(took_over),
                span(killed, took_over)
            ),
        ),
        claim(
            all(What::Up) && ordered([enough_back, up_kcm, up_mcm, up_ca]),
            format!(
                "The way was open again {}, 3 of {NODES} nodes were back {}; restored in order: {}.",
                when(healed),
                when(enough_back),
                times(record.all(What::Up))
            ),
        ),
        claim(
            restored.is_some() && cut_off.is_whole(),
            format!(
                "All as before {}: {}; Deployments with annotations left behind: {left_behind}.",
                when(restored),
                listed(seen_finally)
            ),
        ),
        claim(
            tally.healthy_requests > 0 && tally.healthy_writes == 0,
            format!(
                "The healthy shoot: {} requests in {:.1} minutes over {} connection(s), writes {}.",
                tally.healthy_requests,
                scene.now / 60.0,
                tally.healthy_connections,
                tally.healthy_writes
            ),
        ),
        claim(
            ordered([cut, migrated, healed])
                && tally.moving_requests_before > 0
                && tally.moving_requests_after == 0
                && tally.moving_writes == 0
                && moving.dependents.iter().all(|one| one.is_free_at(0)),
            format!(
                "The moving shoot was left alone from the moment of its migration ({}): {} requests before it, {} after it, {} writes. \
                 Its control plane is being rebuilt in another seed; a watchdog that scaled it here, down in the outage or up after \
                 it, would have worked against Gardener.",
                when(migrated),
                tally.moving_requests_before,
                tally.moving_requests_after,
                tally.moving_writes
            ),
        ),
        claim(
            tally.refusals == 0,
            format!(
                "With exactly the rights that Gardener grants: {} requests refused. The seed saw {} requests, {} of them writes to \
                 Deployments and {} to the probers' own Lease and Events.",
                tally.refusals, tally.seed_requests, tally.scale_writes, tally.own_writes
            ),
        ),
        claim(
            tally.exit_code == Some(0),
            format!(
                "Asked to end, {other} ended in time: {}.",
                tally.exit_code.map_or_else(|| "it had to be killed".to_owned(), |code| format!("exit code {code}"))
            ),
        ),
    ]
}

fn when(at: Option<f64>) -> String {
    at.map_or_else(|| "never".to_owned(), |at| format!("at {at:.1}s"))
}

fn span(from: Option<f64>, to: Option<f64>) -> String {
    from.zip(to).map_or_else(|| "no time".to_owned(), |(from, to)| format!("{:.1}s", to - from))
}

fn times<'a>(events: impl Iterator<Item = &'a Event>) -> String {
    listed(events.map(|event| format!("{} {:.1}s", event.whom, event.at)))
}

fn listed(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

/// Whether each moment lies after the one before; one that is missing breaks the order.
fn ordered<const N: usize>(moments: [Option<f64>; N]) -> bool {
    moments.iter().all(Option::is_some) && moments.windows(2).all(|pair| pair[0] < pair[1])
}

#[cfg(test)]
mod tests {
    use testbed::seed::Dependent;

    use super::*;
    use crate::scene::ShootScene;

    /// What the claims are made of.
    struct Play {
        record: Record,
        scene: Scene,
        tally: Tally,
    }

    impl Play {
        fn broken(&self) -> Vec<Claim> {
            let claims = claims(&self.record, &self.scene, &self.tally);
            claims.into_iter().filter(|claim| !claim.holds).collect()
        }

        fn cut_off(&mut self) -> &mut ShootScene {
            &mut self.scene.shoots[0]
        }

        /// Lets something happen at another time, or not at all.
        fn at(&mut self, what: What, whom: &str, at: Option<f64>) {
            let is = |event: &Event| event.what == what && event.whom == whom;
            match at {
                Some(at) => self.record.events.iter_mut().filter(|event| is(event)).for_each(|event| event.at = at),
                None => self.record.events.retain(|event| !is(event)),
            }
            self.record.events.sort_by(|one, other| one.at.total_cmp(&other.at));
        }
    }

    type Flaw = (&'static str, fn(&mut Play));

    fn did_not_act(resource: &str, leader: &str) -> String {
        format!(
            "Deployment shoot--demo--cut-off/{resource}: The leader ({leader}_0a1b) did not act: taken to 0 by a replica that does not lead"
        )
    }

    fn good() -> Play {
        let mut record = Record { renewed: vec![3.0, 4.0, 5.5, 9.0, 11.5], ..Record::default() };
        record.remembered = DEPENDENTS.iter().map(|(name, replicas)| (*name, replicas.to_string())).collect();
        for (at, what, whom) in [
            (0.1, What::Leads, "prober-a"),
            (12.0, What::Cut, ""),
            (24.0, What::Migrated, ""),
            (33.5, What::Killed, ""),
            (37.0, What::Down, MCM),
            (37.0, What::Down, CA),
            (38.7, What::Down, KCM),
            (40.2, What::Resting, ""),
            (47.0, What::Leads, "prober-b"),
            (58.0, What::Healed, ""),
            (63.0, What::EnoughBack, ""),
            (68.0, What::Up, KCM),
            (79.6, What::Up, MCM),
            (81.2, What::Up, CA),
            (82.7, What::Restored, ""),
        ] {
            record.note(at, what, whom, "");
        }
        let mut scene = Scene { now: 85.0, ..Scene::default() };
        scene.shoots[0].dependents =
            DEPENDENTS.map(|(_, replicas)| Dependent { replicas, ready: replicas, ..Dependent::default() });
        let tally = Tally {
            writes_of_other: 6,
            did_not_act: DEPENDENTS.iter().map(|(name, _)| did_not_act(name, "prober-a")).collect(),
            moving_requests_before: 3,
            healthy_requests: 6,
            exit_code: Some(0),
            ..Tally::default()
        };
        Play { record, scene, tally }
    }

    #[test]
    fn a_good_rescue_holds_every_claim() {
        assert_eq!(good().broken(), []);
    }

    #[test]
    fn nothing_happened_breaks_most_claims() {
        let claims = claims(&Record::default(), &Scene::default(), &Tally::default());
        let holding: Vec<&Claim> = claims.iter().filter(|claim| claim.holds).collect();
        assert_eq!(holding.len(), 2, "only that nobody was given up and nothing refused: {holding:?}");
    }

    #[test]
    fn every_flaw_breaks_its_claim() {
        let flaws: [Flaw; 24] = [
            ("an outage too short to prove anything", |play| play.at(What::Healed, "", Some(50.0))),
            ("killed when it should have acted already", |play| play.at(What::Killed, "", Some(36.0))),
            ("the leader had acted", |play| play.tally.writes_of_leader = 1),
            ("it did not wait for the leader", |play| play.record.renewed[2] = 6.5),
            ("somebody else wrote", |play| play.tally.writes_of_other = 0),
            ("no Event", |play| play.tally.did_not_act.clear()),
            ("an Event that names another", |play| play.tally.did_not_act[0] = did_not_act(KCM, "prober-b")),
            ("nobody leads any more", |play| play.at(What::Leads, "prober-b", None)),
            ("a new leader in time proves nothing", |play| play.at(What::Leads, "prober-b", Some(39.0))),
            ("scaled down in the wrong order", |play| play.at(What::Down, CA, Some(39.0))),
            ("scaled down twice", |play| play.record.note(60.0, What::Down, KCM, "")),
            ("too late", |play| play.at(What::Resting, "", Some(43.5))),
            ("a wrong memory", |play| play.record.remembered[0].1 = "1".into()),
            ("a node given up", |play| play.cut_off().given_up = 1),
            ("scaled up in the wrong order", |play| play.at(What::Up, CA, Some(70.0))),
            ("scaled up before the nodes were back", |play| play.at(What::Up, KCM, Some(60.0))),
            ("a marker left behind", |play| play.cut_off().dependents[0].marker = Some(String::new())),
            ("a memory left behind", |play| play.cut_off().dependents[1].memory = Some("1".into())),
            ("healthy written to", |play| play.tally.healthy_writes = 1),
            ("healthy never looked at", |play| play.tally.healthy_requests = 0),
            ("moving asked after its migration", |play| play.tally.moving_requests_after = 1),
            ("moving brought up against Gardener", |play| play.scene.shoots[1].dependents[0].replicas = 2),
            ("a request refused", |play| play.tally.refusals = 1),
            ("an end that had to be forced", |play| play.tally.exit_code = None),
        ];
        for (name, flaw) in flaws {
            let mut play = good();
            flaw(&mut play);
            assert_eq!(play.broken().len(), 1, "{name}: {:#?}", play.broken());
        }
    }

    #[test]
    fn whoever_leads_already_does_not_stand_in() {
        let mut play = good();
        play.at(What::Leads, "prober-b", Some(38.0));
        let texts: Vec<String> = play.broken().into_iter().map(|claim| claim.text).collect();
        assert!(
            texts.iter().any(|text| text.starts_with("prober-b did not lead (the Lease still named prober-b)")),
            "{texts:#?}"
        );
    }
}
