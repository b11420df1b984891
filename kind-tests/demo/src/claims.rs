//! The summary: every claim with what was seen, and whether it holds.

use crate::record::{Event, Record, What};
use crate::scene::{DEPENDENTS, NEEDED, NODES, Scene};
use crate::tally::Tally;

/// How long a replica that does not lead waits for the leader after its verdict, in seconds.
const PATIENCE: f64 = 1.5;
/// How far what is noted may be off, in seconds: a step of the story.
const STEP: f64 = 0.1;
/// How wide the summary is printed.
const WIDTH: usize = 100;

/// Whether it holds, and what it says, with what was seen.
pub type Claim = (bool, String);

/// What the claims are made of: all that happened, the world at the end, and what was counted.
#[derive(Default)]
pub struct Evidence {
    pub record: Record,
    pub scene: Scene,
    pub tally: Tally,
}

impl Evidence {
    /// All claims, in the order in which they are told.
    pub fn claims(&self) -> Vec<Claim> {
        [self.rescue(), self.restoration(), self.restraint()].concat()
    }

    /// The leader was killed, and the other replica saved the nodes in its place.
    fn rescue(&self) -> Vec<Claim> {
        let Self { record, scene, tally } = self;
        let (leader, other) = (record.leader(), record.other());
        let [cut, killed, down, resting] = [What::Cut, What::Killed, What::Down, What::Resting].map(|what| record.at(what));
        let (healed, first_end, last_end) = (record.at(What::Healed), record.first_end(), record.last_end());
        let (verdict, [kcm, mcm, ca]) = (record.verdict(), record.scaled(What::Down));
        let until_rescue = |event: &&Event| kcm.is_some_and(|kcm| event.at <= kcm);
        let leads = record.all(What::Leads).take_while(until_rescue).last().map_or("nobody", |event| event.whom);
        let names_leader = |(resource, _): &(&str, i64)| {
            let names = format!("/{resource}: The leader ({leader}_");
            tally.did_not_act.iter().filter(|message| message.contains(&names)).count() == 1
        };
        let (events, example) = (tally.did_not_act.len(), tally.did_not_act.last().map_or("", String::as_str));
        let is_remembered = |(name, replicas): &(&'static str, i64)| record.remembered.contains(&(*name, replicas.to_string()));
        let remembered = listed(record.remembered.iter().map(|(name, memory)| format!("{name} {memory}")));
        let (outage, first, last) = (span(cut, healed), when(first_end), when(last_end));
        let (early, late, spare, gone) =
            (span(killed, verdict), span(verdict, down), span(kcm, first_end), span(resting, first_end));
        let (writes, given_up) = (tally.writes_of_leader, [0, 2].map(|shoot| scene.shoots[shoot].given_up));
        vec![
            (
                ordered([cut, first_end, last_end, healed]),
                format!("cut-off's {NODES} nodes were unheard for {outage}: the first would have been lost {first}, all {last}."),
            ),
            (
                ordered([cut, killed, verdict]) && writes == 0,
                format!("{leader} led, was killed {early} before {NEEDED} of {NODES} leases expired, and made {writes} writes."),
            ),
            (
                down.zip(verdict).is_some_and(|(down, verdict)| down - verdict >= PATIENCE - STEP)
                    && ordered([killed, down, first_end])
                    && ordered([kcm, first_end])
                    && leader == leads
                    && tally.writes_of_other > 0,
                format!(
                    "{other} did not lead (the Lease still named {leads}). It left the leader {PATIENCE}s, acted {late} after the \
                     verdict, and took kube-controller-manager to 0, {spare} before the first node would have been lost."
                ),
            ),
            (
                events == DEPENDENTS.len() && DEPENDENTS.iter().all(names_leader),
                format!("Events with the reason LeaderDidNotAct, which name the leader: {events}, as in \"{example}\"."),
            ),
            (
                record.all(What::Down).count() == DEPENDENTS.len() && ordered([cut, mcm, kcm]) && ordered([cut, ca, kcm]),
                format!("Scaled to 0, first who replaces machines, then who gives nodes up: {}.", times(record, What::Down)),
            ),
            (
                ordered([resting, first_end]),
                format!("The last pod of kube-controller-manager was gone {gone} before the first node would have been lost."),
            ),
            (DEPENDENTS.iter().all(is_remembered), format!("The replicas were remembered in annotations: {remembered}.")),
            (given_up == [0, 0], format!("Nodes given up: {} in cut-off, {} in healthy.", given_up[0], given_up[1])),
        ]
    }

    /// All came back, in order.
    fn restoration(&self) -> Vec<Claim> {
        let (record, cut_off) = (&self.record, &self.scene.shoots[0]);
        let [killed, resting, back, up, restored] =
            [What::Killed, What::Resting, What::EnoughBack, What::Up, What::Restored].map(|what| record.at(what));
        let took_over = record.all(What::Leads).nth(1).map(|event| event.at);
        let (other, later, [kcm, mcm, ca]) = (record.other(), span(killed, took_over), record.scaled(What::Up));
        let states = listed(cut_off.deployments().map(|(name, one)| format!("{name} {one}")));
        vec![
            (
                ordered([killed, resting, took_over, up]),
                format!("{other} became the leader {later} after the kill: too late to protect, in time to restore."),
            ),
            (
                record.all(What::Up).count() == DEPENDENTS.len() && ordered([back, kcm, mcm, ca]),
                format!("{NEEDED} of {NODES} nodes were back {}; restored in order: {}.", when(back), times(record, What::Up)),
            ),
            (restored.is_some() && cut_off.is_whole(), format!("All as before {}: {states}.", when(restored))),
        ]
    }

    /// Nothing was touched that was not to be.
    fn restraint(&self) -> Vec<Claim> {
        let Self { record, scene, tally } = self;
        let Tally { healthy_requests, healthy_writes, refusals, .. } = tally;
        let Tally { moving_requests_before: before, moving_requests_after: after, moving_writes: writes, .. } = tally;
        let [cut, migrated, healed] = [What::Cut, What::Migrated, What::Healed].map(|what| record.at(what));
        let (other, minutes) = (record.other(), scene.now / 60.0);
        let end = tally.exit_code.map_or("it had to be killed".to_owned(), |code| format!("exit code {code}"));
        vec![
            (
                *healthy_requests > 0 && *healthy_writes == 0,
                format!("The healthy shoot: {healthy_requests} requests in {minutes:.1} minutes, {healthy_writes} writes."),
            ),
            (
                ordered([cut, migrated, healed])
                    && (*before > 0 && *after == 0 && *writes == 0)
                    && scene.shoots[1].dependents.iter().all(|one| one.is_free_at(0)),
                format!("The moving shoot was left alone: {before} requests before it moved, {after} after, {writes} writes."),
            ),
            (*refusals == 0, format!("With exactly the rights that Gardener grants: {refusals} requests refused.")),
            (tally.exit_code == Some(0), format!("Asked to end, {other} ended in time: {end}.")),
        ]
    }
}

/// The claims as they are printed, and what follows from them.
pub fn summary(claims: &[Claim]) -> String {
    let mut text = "\nWhat happened\n".to_owned();
    for (holds, claim) in claims {
        let verdict = if *holds { "ok    " } else { "FAILED" };
        text += &format!("  {verdict} {}\n", wrapped(claim).join("\n         "));
    }
    text + &match claims.iter().filter(|(holds, _)| !holds).count() {
        0 => "\nThe rescue worked, without the leader: not one node was given up, and no machine was replaced.\n".to_owned(),
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

fn when(at: Option<f64>) -> String {
    at.map_or_else(|| "never".to_owned(), |at| format!("at {at:.1}s"))
}

fn span(from: Option<f64>, to: Option<f64>) -> String {
    from.zip(to).map_or_else(|| "no time".to_owned(), |(from, to)| format!("{:.1}s", to - from))
}

fn times(record: &Record, what: What) -> String {
    listed(record.all(what).map(|event| format!("{} {:.1}s", event.whom, event.at)))
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
    use testbed::gardener::{CA, KCM, MCM};
    use testbed::seed::Dependent;

    use super::*;

    impl Evidence {
        fn broken(&self) -> Vec<Claim> {
            self.claims().into_iter().filter(|(holds, _)| !holds).collect()
        }

        /// Lets something happen at another time.
        fn at(&mut self, what: What, whom: &str, at: f64) {
            let events = self.record.events.iter_mut().filter(|event| event.what == what && event.whom == whom);
            events.for_each(|event| event.at = at);
        }
    }

    type Flaw = (&'static str, fn(&mut Evidence));

    fn did_not_act(resource: &str, leader: &str) -> String {
        format!("Deployment shoot--demo--cut-off/{resource}: The leader ({leader}_0a1b) did not act: taken to 0 by another one")
    }

    fn good() -> Evidence {
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
        Evidence { record, scene, tally }
    }

    #[test]
    fn a_good_rescue_holds_every_claim() {
        assert_eq!(good().broken(), []);
    }

    #[test]
    fn nothing_happened_breaks_most_claims() {
        let holding: Vec<Claim> = Evidence::default().claims().into_iter().filter(|(holds, _)| *holds).collect();
        assert_eq!(holding.len(), 2, "only that nobody was given up and nothing refused: {holding:?}");
    }

    #[test]
    fn every_flaw_breaks_its_claim() {
        let flaws: [Flaw; 24] = [
            ("an outage too short to prove anything", |play| play.at(What::Healed, "", 50.0)),
            ("killed when it should have acted already", |play| play.at(What::Killed, "", 36.0)),
            ("the leader had acted", |play| play.tally.writes_of_leader = 1),
            ("it did not wait for the leader", |play| play.record.renewed[2] = 6.5),
            ("somebody else wrote", |play| play.tally.writes_of_other = 0),
            ("no Event", |play| play.tally.did_not_act.clear()),
            ("an Event that names another", |play| play.tally.did_not_act[0] = did_not_act(KCM, "prober-b")),
            ("nobody leads any more", |play| play.record.events.retain(|event| event.whom != "prober-b")),
            ("a new leader in time proves nothing", |play| play.at(What::Leads, "prober-b", 39.0)),
            ("scaled down in the wrong order", |play| play.at(What::Down, CA, 39.0)),
            ("scaled down twice", |play| play.record.note(60.0, What::Down, KCM, "")),
            ("too late", |play| play.at(What::Resting, "", 43.5)),
            ("a wrong memory", |play| play.record.remembered[0].1 = "1".into()),
            ("a node given up", |play| play.scene.shoots[0].given_up = 1),
            ("scaled up in the wrong order", |play| play.at(What::Up, CA, 70.0)),
            ("scaled up before the nodes were back", |play| play.at(What::Up, KCM, 60.0)),
            ("a marker left behind", |play| play.scene.shoots[0].dependents[0].marker = Some(String::new())),
            ("a memory left behind", |play| play.scene.shoots[0].dependents[1].memory = Some("1".into())),
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
        play.at(What::Leads, "prober-b", 38.0);
        let broken = play.broken();
        let stands_in = |(_, text): &Claim| text.starts_with("prober-b did not lead (the Lease still named prober-b)");
        assert!(broken.iter().any(stands_in), "{broken:#?}");
    }

    #[test]
    fn the_summary_has_a_paragraph_for_each_claim_and_says_how_many_failed() {
        let claims = [true, false].map(|holds| (holds, "a word or two ".repeat(8).trim_end().to_owned()));
        let text = format!("{}a\n         word or two", "a word or two ".repeat(7));
        let expected =
            format!("\nWhat happened\n  ok     {text}\n  FAILED {text}\n\nThe rescue did NOT work: 1 of 2 checks failed.\n");
        assert_eq!(summary(&claims), expected);
        assert!(summary(&claims[..1]).ends_with(
            "word or two\n\nThe rescue worked, without the leader: not one node was given up, and no machine was replaced.\n"
        ));
    }
}
