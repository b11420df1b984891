//! The prober's status for people.

use common::status::{ago, span, table, timestamp};
use maud::{Markup, html};

use super::age_bar::age_bar;
use super::{Concern, Failure, Found, ProbeStatus, ProberStatus, ShootEntry};
use crate::core::zones::LostZone;
use crate::history::Entry;
use crate::owner_records::OwnerStatus;
use crate::shoot_statuses::Intended;

const FOLD: usize = 30;

pub(super) fn body(status: &ProberStatus) -> Markup {
    let (troubled, quiet): (Vec<_>, Vec<_>) = status.shoots.iter().partition(|shoot| shoot.concern() != Concern::None);
    html! {
        @if let Some(what) = status.unknown { p.note { "The seed's " (what) " are not known at present: nothing is concluded without them." } }
        @if status.config_refused { p.note { "The config file as it is now is refused (the log says why); the one below is in force." } }
        ul.tiles {
            li { b { (status.shoots.len()) } "shoots" }
            @for (state, count) in &status.shoots_by_state { li { b { (count) } (words(state)) } }
            @for (concern, label, class) in [
                (Concern::HeldDown, "held down", "bad"),
                (Concern::Outage, "in an outage", "bad"),
                (Concern::LostZone, "with a lost zone", "warn"),
                (Concern::Failing, "probes failing", "warn"),
                (Concern::NotOurs, "not ours, or not known to be", "warn"),
                (Concern::Paused, "paused", "warn"),
                (Concern::Unclear, "unclear", "warn"),
            ] {
                @let count = troubled.iter().filter(|shoot| shoot.concern() == concern).count();
                @if count > 0 { li.(class) { b { (count) } (label) } }
            }
        }
        @if !troubled.is_empty() {
            h2 { "What needs attention" }
            @for shoot in troubled { (card(shoot)) }
        } @else if !quiet.is_empty() {
            p.good { "Nothing is held down, and every probe is complete." }
        }
        @if !quiet.is_empty() {
            h2 { "All other shoots" }
            @if quiet.len() > FOLD {
                details { summary { (quiet.len()) " shoots" } (shoots(&quiet)) }
            } @else { (shoots(&quiet)) }
        }
        h2 { "What happened last" }
        @if status.history.is_empty() { p.soft { "Nothing since this process began." } }
        @let (shown, older) = status.history.split_at(status.history.len().min(FOLD));
        (history("The newest first, as this process has seen it", shown))
        @if !older.is_empty() { details { summary { (older.len()) " before that" } (history("Before that", older)) } }
        h2 { "Config in force" }
        details { summary { "defaults included" } pre { (format!("{:#}", status.config)) } }
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
            "elsewhere" => p.warn { "It belongs to another seed, and is neither probed nor written: " (why) },
            "unresolved" => p.warn { "Whose it is cannot be told, and it is neither probed nor written: " (why) },
            _ => p.soft { "Owner record: " (why) },
        }
    }
}

fn details(probe: &ProbeStatus) -> Markup {
    html! {
        @if probe.paused { p.warn { "Paused by its operators: it is probed, and nothing is written." } }
        @if !probe.settings.is_empty() {
            p.soft { "Set by annotations:" @for shown in &probe.settings { " " code { (shown.setting) " " (shown.value) } " (" (shown.from.as_str()) ")" } }
        }
        @for held in &probe.held_down {
            p.bad { "Held down: " code { (held.kind) "/" (held.name) } " since " (timestamp(held.since)) " or longer" }
        }
        @if let Some(direction) = probe.scaling { p { "A flow is scaling " (direction) " now." } }
        @for Intended { kind, name, before, after } in &probe.would_write {
            p.warn { "Would be written, were this no dry run: " code { (kind) "/" (name) } " from " (before) " to " (after) " replicas" }
        }
        @if let Some(Failure { stage, category, message, failed_probes }) = &probe.failure {
            p.warn { "The last " (failed_probes) " probe" @if *failed_probes > 1 { "s" } " told nothing, so nothing is concluded: " (stage) ", " (category) ": " (message) }
        }
        @match &probe.found {
            None => p { "No probe was complete yet." },
            Some(found) => { (numbers(found)) }
        }
        p.soft { "Next look: " (due(probe.next_look_in_seconds)) }
    }
}

fn numbers(found: &Found) -> Markup {
    let Found { candidates, expired, undecided, fraction, .. } = *found;
    let (expired_after, given_up_after) = (found.expired_after_seconds, found.given_up_after_seconds);
    let rows = found.leases.iter().map(|lease| {
        let skew = if lease.skew_seconds == 0.0 { String::new() } else { format!("{:+.0}s", -lease.skew_seconds) };
        let class = match lease.state {
            "valid" => "good",
            "undecided" => "warn",
            _ => "bad",
        };
        let bar = age_bar(lease.age_seconds, expired_after, given_up_after, class);
        let age = html! { (format!("{:.1}s", lease.age_seconds)) };
        let mut cells = vec![html! { code { (lease.node) } }, age, bar, html! { span.(class) { (lease.state) } }];
        cells.extend((found.skewed > 0).then(|| html! { (skew) }));
        cells
    });
    let marks = format!("Marks at {expired_after}s and {given_up_after}s");
    let columns = ["Node", "Age", marks.as_str(), "State", "Clock"];
    html! {
        p {
            strong { (words(found.verdict)) } ": " (expired) " of " (candidates) " leases expired"
            @if undecided > 0 { ", " (undecided) " undecided" }
            @if found.skewed > 0 { ", " (found.skewed) " by clocks that differ" }
            @if candidates > 1 { " (an outage from " (format!("{:.0}%", fraction * 100.0)) " on)" }
            ", looked at " (ago(found.seconds_ago))
        }
        @if !found.excluded.is_empty() {
            p.soft { "Not counted: " @for (reason, count) in &found.excluded { span { (count) " " (words(reason)) " " } } }
        }
        @for LostZone { zone, candidates, expired } in &found.lost_zones {
            p.warn { "Zone " code { (zone) } " is lost: " (expired) " of its " (candidates) " leases expired. Nothing is scaled for that." }
        }
        (table(
            &format!("Oldest leases as of that look; expired after {expired_after}s, given up by kube-controller-manager after {given_up_after}s"),
            &columns[..if found.skewed > 0 { 5 } else { 4 }],
            rows,
        ))
    }
}

fn shoots(shoots: &[&ShootEntry]) -> Markup {
    let rows = shoots.iter().map(|shoot| {
        let probe = shoot.probe.as_ref();
        let leases = probe.and_then(|probe| probe.found.as_ref()).map(|found| {
            html! { (found.candidates - found.expired - found.undecided) " of " (found.candidates) " valid, " (ago(found.seconds_ago)) }
        });
        let next = probe.map(|probe| html! { (due(probe.next_look_in_seconds)) });
        vec![html! { code { (shoot.namespace) } }, html! { (words(shoot.state)) }, leases.unwrap_or_default(), next.unwrap_or_default()]
    });
    table("Shoots", &["Namespace", "State", "Leases", "Next look"], rows)
}

fn history(caption: &str, entries: &[Entry]) -> Markup {
    let rows = entries.iter().map(|entry| {
        let shoot = html! { @if let Some(namespace) = &entry.namespace { code { (namespace) } } };
        vec![timestamp(entry.at), shoot, html! { (entry.sentence()) }]
    });
    table(caption, &["When", "Shoot", "What"], rows)
}

/// As in `scale_up` -> `scale up`.
fn words(word: &str) -> String {
    word.replace('_', " ")
}

fn due(seconds: i64) -> String {
    if seconds < 0 { format!("due for {}", span(-seconds)) } else { format!("in {}", span(seconds)) }
}
