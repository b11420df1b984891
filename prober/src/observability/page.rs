//! The prober's status for people.

use common::status::{ago, table, timestamp};
use common_core::span::span;
use maud::{Markup, html};
use prober_core::in_seconds;
use prober_core::judgement::Finding;
use prober_core::lease::LeaseState;
use prober_core::outage::Outage;
use prober_core::owner::Standing;
use prober_core::shoot::Intended;
use prober_core::verdict::Tally;
use prober_core::zones::LostZone;

use super::age_bar::age_bar;
use super::status::{Concern, Failure, Found, ProbeStatus, ProberStatus, ShootEntry};
use crate::owner_records::OwnerStatus;

const FOLD: usize = 30;

/// What is counted at the top, and how it is marked.
const CONCERNS: [(Concern, &str, &str); 7] = [
    (Concern::HeldDown, "held down", "bad"),
    (Concern::Outage, "in an outage", "bad"),
    (Concern::LostZone, "with a lost zone", "warn"),
    (Concern::Failing, "probes failing", "warn"),
    (Concern::NotOurs, "not ours, or not known to be", "warn"),
    (Concern::Paused, "paused", "warn"),
    (Concern::Unclear, "unclear", "warn"),
];

pub(super) fn body(status: &ProberStatus) -> Markup {
    let (troubled, quiet): (Vec<_>, Vec<_>) = status
        .shoots
        .iter()
        .partition(|shoot| shoot.concern() != Concern::None);
    html! {
        @if let Some(what) = status.unknown { p.note { "The seed's " (what) " are not known at present: nothing is concluded without them." } }
        @if status.config_refused { p.note { "The config file as it is now is refused (the log says why); the one below is in force." } }
        (tiles(status))
        @if !troubled.is_empty() {
            h2 { "What needs attention" }
            @for shoot in troubled { (card(shoot)) }
        } @else if !quiet.is_empty() {
            p.good { "Nothing is held down, and every probe is complete." }
        }
        @if !quiet.is_empty() {
            h2 { "All other shoots" }
            (folded(quiet.len() > FOLD, &format!("{} shoots", quiet.len()), shoots(&quiet)))
        }
        h2 { "Outages" }
        @if status.outages.is_empty() { p.soft { "None since this process began." } }
        @let (shown, older) = status.outages.split_at(status.outages.len().min(FOLD));
        (outages("The newest first, as this process has observed them", shown))
        @if !older.is_empty() { (folded(true, &format!("{} before that", older.len()), outages("Before that", older))) }
        h2 { "Config in force" }
        (folded(true, "defaults included", html! { pre { (format!("{:#}", status.config)) } }))
    }
}

fn tiles(status: &ProberStatus) -> Markup {
    let tile = |count: usize, what: &str| html! { b { (count) } (what) };
    let count = |concern| {
        status
            .shoots
            .iter()
            .filter(|shoot| shoot.concern() == concern)
            .count()
    };
    let concerns = CONCERNS.map(|(concern, label, class)| (count(concern), label, class));
    html! {
        ul.tiles {
            li { (tile(status.shoots.len(), "shoots")) }
            @for (state, count) in &status.shoots_by_state { li { (tile(*count, &words(state))) } }
            @for (count, label, class) in concerns.into_iter().filter(|(count, ..)| *count > 0) { li.(class) { (tile(count, label)) } }
        }
    }
}

/// Behind a summary, where it is long.
fn folded(is_long: bool, summary: &str, content: Markup) -> Markup {
    if is_long {
        html! { details { summary { (summary) } (content) } }
    } else {
        content
    }
}

fn card(shoot: &ShootEntry) -> Markup {
    html! {
        section.card {
            h3 { (shoot.namespace) " " span.soft { (words(shoot.state)) } }
            @if let Some(owner) = &shoot.owner { (owner_record(owner)) }
            @match &shoot.probe {
                None if shoot.owner.is_some() => p { "It is not probed." },
                None => p { "Its Cluster holds no shoot that can be understood; a probe that ran before would go on." },
                Some(probe) => { (details(probe)) }
            }
        }
    }
}

fn owner_record(owner: &OwnerStatus) -> Markup {
    let why = owner.sentence();
    html! {
        @match owner.standing {
            Standing::Elsewhere { .. } => p.warn { "It belongs to another seed, and is neither probed nor written: " (why) },
            Standing::Unresolved(_) => p.warn { "It is not known whose it is, and it is neither probed nor written: " (why) },
            _ => p.soft { "Owner record: " (why) },
        }
    }
}

fn details(probe: &ProbeStatus) -> Markup {
    html! {
        @if probe.paused { p.warn { "Paused by its operators: it is probed, and nothing is written." } }
        @if !probe.settings.is_empty() {
            p.soft { "Set by annotations:" @for shown in &probe.settings { " " code { (shown.setting) " " (shown.value) } " (" (shown.from.into_str()) ")" } }
        }
        @for held in &probe.held_down {
            p.bad { "Held down: " code { (held.kind) "/" (held.name) } " since " (timestamp(held.since)) " or longer" }
        }
        @if let Some(direction) = probe.scaling { p { "A flow is scaling " (direction) " now." } }
        @for Intended { kind, name, before, after } in &probe.would_write {
            p.warn { "Would be written, were this no dry run: " code { (kind) "/" (name) } " from " (before) " to " (after) " replicas" }
        }
        @if let Some(Failure { stage, category, message, failed_probes }) = &probe.failure {
            p.warn { "The last " (failed_probes) " probe" @if *failed_probes > 1 { "s were" } @else { " was" } " not complete, so nothing is concluded: " (stage) ", " (category) ": " (message) }
        }
        @match &probe.found {
            None => p { "No probe was complete yet." },
            Some(found) => { (numbers(found)) }
        }
        p.soft { "Next look: " (due(probe.next_look_in_seconds)) }
    }
}

fn numbers(found: &Found) -> Markup {
    let Found {
        seconds_ago,
        finding,
    } = found;
    let Finding {
        tally: Tally {
            candidates,
            expired,
            undecided,
        },
        skewed,
        fraction,
        grace,
        ..
    } = *finding;
    let [expired_after, given_up_after] = [grace.threshold(), grace.period()].map(in_seconds);
    let rows = finding.leases.iter().map(|lease| {
        let (age, state, skew) = (
            in_seconds(lease.age),
            lease.state.into_str(),
            in_seconds(lease.skew),
        );
        let class = match lease.state {
            LeaseState::Valid => "good",
            LeaseState::Undecided => "warn",
            LeaseState::Expired => "bad",
        };
        let bar = age_bar(age, expired_after, given_up_after, class);
        let mut cells = vec![
            html! { code { (lease.node) } },
            html! { (format!("{age:.1}s")) },
            bar,
            html! { span.(class) { (state) } },
        ];
        cells.extend(
            (skewed > 0).then(|| html! { @if skew != 0.0 { (format!("{:+.0}s", -skew)) } }),
        );
        cells
    });
    let marks = format!("Marks at {expired_after}s and {given_up_after}s");
    let columns = ["Node", "Age", marks.as_str(), "State", "Clock"];
    html! {
        p {
            strong { (words(finding.verdict.into_str())) } ": " (expired) " of " (candidates) " leases expired"
            @if undecided > 0 { ", " (undecided) " undecided" }
            @if skewed > 0 { ", " (skewed) " by clocks that differ" }
            @if candidates > 1 { " (an outage from " (format!("{:.0}%", fraction * 100.0)) " on)" }
            ", looked at " (ago(*seconds_ago))
        }
        @if !finding.excluded.is_empty() {
            p.soft { "Not counted: " @for (reason, count) in &finding.excluded { span { (count) " " (words(reason)) " " } } }
        }
        @for LostZone { zone, candidates, expired } in &finding.lost_zones {
            p.warn { "Zone " code { (zone) } " is lost: " (expired) " of its " (candidates) " leases expired. Nothing is scaled for that." }
        }
        (table(
            &format!("Oldest leases as of that look; expired after {expired_after}s, given up by kube-controller-manager after {given_up_after}s"),
            &columns[..if skewed > 0 { 5 } else { 4 }],
            rows,
        ))
    }
}

fn shoots(shoots: &[&ShootEntry]) -> Markup {
    let rows = shoots.iter().map(|shoot| {
        let probe = shoot.probe.as_ref();
        let leases = probe.and_then(|probe| probe.found.as_ref()).map(|found| {
            let Tally { candidates, expired, undecided } = found.finding.tally;
            html! { (candidates - expired - undecided) " of " (candidates) " valid, " (ago(found.seconds_ago)) }
        });
        let next = probe.map(|probe| html! { (due(probe.next_look_in_seconds)) });
        vec![
            html! { code { (shoot.namespace) } },
            html! { (words(shoot.state)) },
            leases.unwrap_or_default(),
            next.unwrap_or_default(),
        ]
    });
    table(
        "Shoots",
        &["Namespace", "State", "Leases", "Next look"],
        rows,
    )
}

fn outages(caption: &str, outages: &[Outage]) -> Markup {
    let row = |outage: &Outage| {
        vec![
            timestamp(outage.began),
            html! { code { (outage.namespace) } },
            html! { (outage.sentence()) },
        ]
    };
    table(
        caption,
        &["Began", "Shoot", "What"],
        outages.iter().map(row),
    )
}

/// As in `scale_up` -> `scale up`.
fn words(word: &str) -> String {
    word.replace('_', " ")
}

fn due(seconds: i64) -> String {
    if seconds < 0 {
        format!("due for {}", span(-seconds))
    } else {
        format!("in {}", span(seconds))
    }
}
