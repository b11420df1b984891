//! Timelines as text: a shoot, what happens to it and when, and what comes of it.
//!
//! ```text
//! outage, standby; 10 mcm raised; 20 nodes back, paused; 170     1.5 mcm 0, 1.5 kcm 0; probes: 0
//! '- begins so     '- at this time, to be noticed by the next     '- writes   '- anything else
//! 6 to 69 by 1 mcm raised: each second
//! ```

use super::timeline::{Api, FAILS, SILENT_FROM, Timeline, healthy};
use super::*;
use crate::replicas::Unscalable;
use crate::tests::scene::span;

/// Tells stories, a line each: what it is about, the story, and what comes of it.
#[track_caller]
pub fn tell(stories: &'static str) {
    let mut wrong = vec![];
    for [what, story, expected] in table(stories) {
        let (begins, events) = story.split_once("; ").expect(story);
        let came = begin(begins).then(events).comes_to(expected);
        if came != expected {
            wrong.push(format!("{what}: {came}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A leader beside a healthy shoot, but for what is said.
pub fn begin(changes: &str) -> Timeline {
    let mut shoot = healthy();
    shoot.change(changes);
    shoot.shoot = Shoot::new(shoot.start, &shoot.env, shoot.now);
    shoot
}

fn id(name: &str) -> DependentId {
    DependentId(NAMES.iter().position(|known| *known == name).expect(name))
}

const NAMES: [&str; 3] = ["mcm", "kcm", "aux"];

impl Timeline {
    /// Lets time pass and things happen.
    pub fn then(&mut self, events: &str) -> &mut Self {
        for event in events.split("; ") {
            let (time, changes) = event.split_once(' ').unwrap_or((event, ""));
            let words: Vec<_> = changes.splitn(5, ' ').collect();
            if let ["to", end, "by", step, changes] = words[..] {
                let (begin, end, step) = (number(time), number(end), number(step));
                for count in 0..=((end - begin) / step).round() as u32 {
                    self.until(begin + f64::from(count) * step).change(changes);
                }
            } else {
                self.until(number(time)).change(changes);
            }
        }
        self
    }

    fn change(&mut self, changes: &str) {
        for change in changes.split(", ").filter(|change| !change.is_empty()) {
            self.change_one(change);
        }
    }

    #[rustfmt::skip]
    fn change_one(&mut self, change: &str) {
        let now = self.now;
        match change {
            "outage" => { self.fall_silent(SILENT_FROM); self.grace(40.0); }
            "mark" => self.mark(),
            // The replica, and what is configured.
            "new" => self.start.in_operation = false,
            "standby" => self.env.leads = false,
            "lead" => (self.env.leads, self.env.seed_since.up) = (true, Some(now)),
            "dry run" => self.env.dry_run = true,
            "reload" => self.reload(|_| ()),
            "mcm alone" => { self.reload(|config| config.dependents.truncate(1)); self.env.dependents.truncate(1); }
            "with aux" => self.add_aux(0, false),
            "with optional aux" => self.add_aux(0, true),
            "with last aux" => self.add_aux(2, false),
            "only held down" => self.env.options.restore_only_held_down.value = true,
            "protects off" => self.env.options.standby_protects.value = false,
            "settings" => change_settings(&mut self.env),
            // The nodes and their API server.
            "nodes back" => self.nodes_back(),
            // They renew now, and are silent as before.
            "blip" => { self.nodes_back(); self.fall_silent(self.time() + 5.0); }
            "no node counts" => self.nodes.excluded = true,
            "probes answered" => self.api = Api::Answers,
            "probes fail" => self.api = FAILS,
            "probes hang" => self.api = Api::Hangs,
            "passivated" => self.api = Api::Passivated,
            "probe fails" => self.input(Input::Failed(ProbeFailure::Other)),
            // The seed.
            "paused" => self.env.paused = Some(true),
            "unpaused" => self.env.paused = Some(false),
            "pause unknown" => self.env.paused = None,
            "elsewhere" => self.env.is_ours = false,
            "Clusters unseen" => self.env.seed_since.down = None,
            "Clusters seen" => self.env.seed_since.down = Some(now),
            "Clusters unread" => self.env.seed_since.up = None,
            "Clusters read" => self.env.seed_since.up = Some(now),
            "owner here" => self.env.owner = Owner::Here,
            "owner unknown" => self.env.owner = Owner::Unknown,
            "owner tolerated" => self.env.owner = Owner::LeaderOnly,
            "seed agrees" => self.seed.disagrees = false,
            "seed disagrees" => self.seed.disagrees = true,
            "pods linger" => self.seed.pods_linger = true,
            "views lag" => self.seed.view_lags = true,
            "read held" => self.seed.read = Some(Observed { resource_version: "3".into(), ..held("1") }),
            "read at 2" => self.seed.read = Some(Observed { resource_version: "2".into(), ..running(2) }),
            // The dependents.
            "permits held" => self.seed.holds_permits = true,
            "permits given" => self.seed.holds_permits = false,
            "writes held" => self.seed.holds_writes = true,
            "writes made" => self.seed.holds_writes = false,
            "refuse nothing" => self.seed.refused.clear(),
            "held down" => self.change("mcm held, kcm held"),
            _ => self.change_by(&change.split(' ').collect::<Vec<_>>()),
        }
    }

    /// A change with numbers or a dependent in it.
    #[rustfmt::skip]
    fn change_by(&mut self, words: &[&str]) {
        let duration = |text: &str| Duration::from_secs_f64(number(text));
        match words {
            ["suspended", "to", time, "s"] => self.now = self.moment(number(time)),
            ["eligible", "at", time, "s"] => self.start = Start { eligible: self.moment(number(time)), in_operation: false },
            ["leader", "silent", "from", time, "s"] => self.env.leader_silent_from = Some(self.moment(number(time))),
            ["chance", chance] => self.env.chance = number(chance),
            ["initialDelay", seconds, "s"] => self.reload(|config| config.initial_delay = duration(seconds)),
            ["interval", seconds, "s"] => self.reload(|config| config.probe_interval = duration(seconds)),
            ["jitter", factor] => self.reload(|config| config.backoff_jitter_factor = number(factor)),
            [name, "delayed", "up", "by", seconds, "s"] => self.reload(|config| config.dependents[id(name).0].scale_up.initial_delay = duration(seconds)),
            [name, "delayed", "down", "by", seconds, "s"] => self.reload(|config| config.dependents[id(name).0].scale_down.initial_delay = duration(seconds)),
            ["stabilization", seconds, "s"] => self.env.options.scale_up_stabilization.value = duration(seconds),
            ["grace", seconds, "s"] => self.grace(number(seconds)),
            ["monitor", "grace", seconds, "s"] => Arc::make_mut(&mut self.env.settings).node_monitor_grace = Some(span(number(seconds))),
            ["silent", "from", time, "s"] => self.fall_silent(number(time)),
            [count, "nodes"] => (self.nodes.count, self.nodes.machines) = (number(count) as usize, number(count) as usize),
            [count, "machines"] => self.nodes.machines = number(count) as usize,
            [count, "spared"] => self.nodes.spared = number(count) as usize,
            ["clocks", "ahead", seconds, "s"] => self.nodes.ahead = number(seconds),
            ["answers", "take", seconds, "s"] => self.api = Api::Takes(span(number(seconds))),
            ["throttled", seconds, "s"] => self.api = Api::Fails(ProbeFailure::Throttled(span(number(seconds)))),
            ["answer", sent] => self.answer(self.moment(number(sent))),
            ["version", version] => self.seed.version = number(version) as u64,
            ["permit"] => self.permit(),
            ["make", name] => self.make(id(name)),
            ["conflict", name] => self.conflict(id(name)),
            ["unread", "conflict", name] => self.refuse(id(name), Refusal::Conflict(DependentState::Unknown)),
            ["timeout", name] => self.refuse(id(name), Refusal::Timeout),
            ["vanished", name] => self.refuse(id(name), Refusal::NotFound),
            ["refuse", name] => self.seed.refused.push(id(name)),
            [name, "unknown"] => self.env.dependents[id(name).0] = DependentState::Unknown,
            [name, "missing"] => self.env.dependents[id(name).0] = DependentState::Absent,
            [name, "unscalable"] => self.env.dependents[id(name).0] = DependentState::Unscalable(Unscalable::NoReplicas),
            [name, state @ ..] => self.show(id(name), |observed| put(observed, state)),
            [] => unreachable!("an empty change"),
        }
    }

    fn reload(&mut self, change: impl FnOnce(&mut Config)) {
        let mut config = Config::clone(&self.env.config);
        change(&mut config);
        self.env.config = Arc::new(config);
    }

    /// Adds a third dependent, which goes down with the first level.
    fn add_aux(&mut self, level: i32, optional: bool) {
        let mut aux = dependent("aux", level, 0);
        aux.optional = optional;
        self.reload(|config| config.dependents.push(aux));
        self.env.dependents.push(present(running(1)));
    }

    fn refuse(&mut self, id: DependentId, refusal: Refusal) {
        self.input(Input::Written(id, Err(refusal)));
    }

    /// What came of it, in the form of what is expected.
    pub fn comes_to(&self, expected: &str) -> String {
        let part = |part: &str| match part.split_once(": ") {
            Some((label, _)) => format!("{label}: {}", self.shown(label)),
            None => self.shown("writes"),
        };
        expected
            .split("; ")
            .map(part)
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// All of a kind: `writes`, `probes from 5`, `probes from 5 to 10`, `mcm`.
    fn shown(&self, label: &str) -> String {
        let words: Vec<_> = label.split(' ').collect();
        let (kind, from, to) = match words[..] {
            [kind, "from", from, "to", to] => (kind, number(from), number(to)),
            [kind, "from", from] => (kind, number(from), f64::MAX),
            [kind, "to", to] => (kind, f64::MIN, number(to)),
            _ => (label, f64::MIN, f64::MAX),
        };
        let mut said = self.said(|action, verdict| told(kind, action, verdict));
        if kind == "verdicts" {
            said.dedup_by(|next, before| next.1 == before.1);
        }
        said.retain(|(when, _)| from <= *when && *when <= to);
        if kind == "gap" {
            let gaps = said.windows(2).map(|two| two[1].0 - two[0].0);
            return format!("{:.1}", gaps.fold(0.0, f64::max));
        }
        let timeless = ["scaled", "verdicts", "reports", "bases"].contains(&kind);
        let text = said.into_iter().map(|(when, what)| {
            if timeless {
                what
            } else {
                format!("{} {what}", when + 0.0).trim_end().to_owned()
            }
        });
        let text = text.collect::<Vec<_>>().join(", ");
        if text.is_empty() {
            "nothing".to_owned()
        } else {
            text
        }
    }
}

/// Others change a dependent.
fn put(observed: &mut Observed, state: &[&str]) {
    match state {
        ["same"] => {}
        ["running" | "undone"] => *observed = running(1),
        ["stopped"] => *observed = running(0),
        ["held" | "down"] => *observed = held("1"),
        ["held", "at", memory] => *observed = held(memory),
        ["ending"] => *observed = ending(),
        ["raised"] => observed.replicas = 1,
        ["at", replicas] => observed.replicas = number(replicas) as i32,
        ["ready", "at", replicas] => {
            observed.replicas = number(replicas) as i32;
            observed.ready = observed.replicas;
        }
        ["unready"] => observed.ready = 0,
        ["memory", memory] => observed.marks.replicas = Some((*memory).to_owned()),
        ["unmarked"] => observed.marks.held_down = false,
        ["ignored"] => observed.marks.ignored = true,
        ["remade"] => observed.uid = "another".into(),
        _ => unreachable!("no such change: {state:?}"),
    }
}

/// What an action says of a kind.
fn told(kind: &str, action: &Action, verdict: Option<Verdict>) -> Option<String> {
    let name = |id: DependentId| NAMES[id.0];
    Some(match (kind, action) {
        (_, Action::Write(order)) if kind == name(order.dependent) => {
            order.change.replicas().to_string()
        }
        ("writes" | "scaled", Action::Write(order)) => {
            let change = &order.change;
            let written = format!("{} {}", name(order.dependent), change.replicas());
            match change.write.marks.replicas.as_deref() {
                None | Some("1") => written,
                Some(memory) => format!("{written} of {memory}"),
            }
        }
        ("verdicts", Action::Report(Report::Found)) => format!("{:?}", verdict?),
        ("bases", Action::Write(order)) => order.change.base.resource_version.clone(),
        ("probes" | "gap", Action::Probe { .. })
        | ("listed", Action::Probe { with_nodes: true }) => String::new(),
        ("tries", Action::Write(order)) => name(order.dependent).to_owned(),
        ("limits", Action::Write(order)) => {
            format!("{} {}", name(order.dependent), order.limit.as_secs())
        }
        ("cancelled", Action::Cancel(id)) => name(*id).to_owned(),
        ("waits", Action::Report(Report::Waits(id, _, waits))) => {
            format!("{} {:?}", name(*id), waits.reason)
        }
        ("left", Action::Report(Report::LeftBehind(id))) => name(*id).to_owned(),
        ("failed", Action::Report(Report::NotScaled(id, direction, _))) => {
            format!("{} {direction:?}", name(*id))
        }
        ("would", Action::Report(Report::WouldWrite(id, _, _, after))) => {
            format!("{} {after}", name(*id))
        }
        ("reports", Action::Report(Report::Found | Report::Written { .. } | Report::Waits(..))) => {
            return None;
        }
        ("reports", Action::Report(report)) => {
            let names = NAMES.iter().enumerate();
            names.fold(format!("{report:?}"), |text, (at, name)| {
                text.replace(&format!("{:?}", DependentId(at)), name)
            })
        }
        _ => return None,
    })
}
