//! The prober's status for people.

use std::collections::BTreeMap;

use common::status::{Status, ago, table, timestamp};
use maud::{Markup, html};

use super::age_bar::age_bar;
use super::facts::{Fact, due, lease_cells};
use super::in_seconds;
use super::outage::Outage;
use super::status::{Found, ProberStatus, ShootEntry, ShownDependent};

/// Longer lists are behind a summary.
const FOLD: usize = 30;

impl Status for ProberStatus {
    fn body(&self) -> Markup {
        body(self)
    }

    fn without_lead(&self) -> &'static str {
        let protects = "standbyProtects";
        let mut settings = self.settings.iter();
        let protects = match settings.find(|option| option.setting == protects) {
            Some(option) => option.value == "true",
            None => self.config[protects] == true,
        };
        if protects {
            "The leader acts first; this one probes all shoots, too, and protects those for which the leader does not act."
        } else {
            "This one probes all shoots, too, and writes nothing, since standbyProtects is false."
        }
    }
}

fn body(status: &ProberStatus) -> Markup {
    let (troubled, quiet): (Vec<_>, Vec<_>) = status
        .shoots
        .iter()
        .partition(|shoot| shoot.concern().is_some());
    let (newest, older) = status.outages.split_at(status.outages.len().min(FOLD));
    html! {
        @if let Some(what) = &status.unknown { p.note { "The seed's " (what) " are not known at present: nothing is concluded without them." } }
        @for right in &status.missing_rights { p.note { "The right to " (right) " is missing: what needs it could not be scaled in an outage." } }
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
        @if newest.is_empty() { p.soft { "None since this process began." } }
        (outages("The newest first, as this process has observed them", newest))
        @if !older.is_empty() { (folded(true, &format!("{} before that", older.len()), outages("Before that", older))) }
        h2 { "Config in force" }
        (folded(true, "defaults included", html! { pre { (format!("{:#}", status.config)) } }))
    }
}

fn tiles(status: &ProberStatus) -> Markup {
    let mut concerns = BTreeMap::new();
    for concern in status.shoots.iter().filter_map(ShootEntry::concern) {
        concerns.entry(concern.urgency).or_insert((0, concern)).0 += 1;
    }
    html! {
        ul.tiles {
            li { b { (status.shoots.len()) } "shoots" }
            @for (state, count) in &status.shoots_by_state { li { b { (count) } (state.replace('_', " ")) } }
            @for (count, concern) in concerns.values() { li.(concern.tone.into_str()) { b { (count) } (concern.label) } }
        }
    }
}

fn folded(is_long: bool, summary: &str, content: Markup) -> Markup {
    if is_long {
        html! { details { summary { (summary) } (content) } }
    } else {
        content
    }
}

fn card(shoot: &ShootEntry) -> Markup {
    let found = shoot.probe.iter().flat_map(|probe| &probe.found);
    html! {
        section.card {
            h3 { (shoot.namespace) }
            @for Fact { name, text, tone } in shoot.facts() { p.(tone.into_str()) { (name) ": " (text) } }
            (dependents(&shoot.dependents))
            @for found in found { (leases(found)) }
        }
    }
}

fn dependents(dependents: &[ShownDependent]) -> Markup {
    let count = |count: Option<i32>| html! { (count.map_or_else(|| "-".to_owned(), |count| count.to_string())) };
    let rows = dependents.iter().map(|dependent| {
        let (tone, why) = dependent.why();
        vec![
            html! { code { (dependent.resource) } },
            count(dependent.replicas),
            count(dependent.ready),
            html! { span.(tone.into_str()) { (why) } },
        ]
    });
    table(
        "Controllers",
        &["Resource", "Replicas", "Ready", "Why"],
        rows,
    )
}

fn leases(found: &Found) -> Markup {
    let (expired_after, unknown_after) = (found.expired_after_seconds, found.unknown_after_seconds);
    let rows = found.leases.iter().map(|lease| {
        let (tone, [node, age, state, clock]) = lease_cells(lease);
        let bar = age_bar(
            in_seconds(lease.age),
            expired_after,
            unknown_after,
            tone.into_str(),
        );
        vec![
            html! { code { (node) } },
            html! { (age) },
            bar,
            html! { span.(tone.into_str()) { (state) } @if !clock.is_empty() { ", clock " (clock) } },
        ]
    });
    let marks = format!("Marks at {expired_after}s and {unknown_after}s");
    let caption = format!(
        "Oldest leases as of that probe; expired after {expired_after}s, marked Unknown by kube-controller-manager after {unknown_after}s"
    );
    table(&caption, &["Node", "Age", &marks, "State"], rows)
}

fn shoots(shoots: &[&ShootEntry]) -> Markup {
    let rows = shoots.iter().map(|shoot| {
        let probe = shoot.probe.as_ref();
        let found = probe.and_then(|probe| probe.found.as_ref());
        let leases = found.map(|found| {
            let Found {
                candidates,
                expired,
                undecided,
                ..
            } = *found;
            let valid = candidates - expired - undecided;
            format!("{valid} of {candidates} valid, {}", ago(found.seconds_ago))
        });
        let next = probe.map(|probe| due(probe.next_probe_in_seconds));
        vec![
            html! { code { (shoot.namespace) } },
            html! { (shoot.state.replace('_', " ")) },
            html! { (leases.unwrap_or_default()) },
            html! { (next.unwrap_or_default()) },
        ]
    });
    table(
        "Shoots",
        &["Namespace", "State", "Leases", "Next probe"],
        rows,
    )
}

fn outages(caption: &str, outages: &[Outage]) -> Markup {
    let rows = outages.iter().map(|outage| {
        vec![
            timestamp(outage.began),
            html! { code { (outage.namespace) } },
            html! { (outage.sentence()) },
        ]
    });
    table(caption, &["Began", "Shoot", "What"], rows)
}
