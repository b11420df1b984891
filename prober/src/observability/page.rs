//! The prober's status for people.

use std::collections::VecDeque;

use common::status::{Status, ago, table, timestamp};
use maud::{Markup, html};

use super::facts::{Fact, lease_cells};
use super::outage::Outage;
use super::status::ProberStatus;
use super::view::{Found, ShootView};

/// Length of a lease's bar, as a multiple of the later mark; what is older fills it.
const LENGTH: f64 = 4.0 / 3.0;

impl Status for ProberStatus {
    fn body(&self) -> Markup {
        let troubled = self.shoots.iter();
        let troubled: Vec<_> = troubled.filter(|shoot| shoot.concern().is_some()).collect();
        html! {
            @for fact in self.facts() { p.note { (fact.text) } }
            @if troubled.is_empty() {
                p.good { "Nothing is held down, and every probe is complete." }
            } @else {
                h2 { "What needs attention" }
                @for shoot in troubled { (card(shoot)) }
            }
            h2 { "All shoots" }
            (shoots(&self.shoots))
            h2 { "The last outages" }
            @if self.outages.is_empty() { p.soft { "None since this process began." } }
            (outages(&self.outages))
            h2 { "Config in force" }
            details { summary { "defaults included" } pre { (format!("{:#}", self.config)) } }
        }
    }

    fn without_lead(&self) -> &'static str {
        "The leader acts first; this one probes all shoots, too, and protects those for which the leader does not act, unless standbyProtects is false."
    }
}

fn card(shoot: &ShootView) -> Markup {
    html! {
        section.card {
            h3 { (shoot.namespace) }
            @for Fact { tone, text } in shoot.facts() { p.(tone.into_str()) { (text) } }
            @if let Some(found) = shoot.found() { (leases(found)) }
        }
    }
}

fn leases(found: &Found) -> Markup {
    let (expired, unknown) = (found.expired_after_seconds, found.unknown_after_seconds);
    let rows = found.leases.iter().map(|lease| {
        let (tone, [node, age, state, clock]) = lease_cells(lease);
        let tone = tone.into_str();
        vec![
            html! { code { (node) } },
            html! { (age) },
            age_bar(lease.age_seconds, expired, unknown, tone),
            html! { span.(tone) { (state) } @if !clock.is_empty() { ", clock " (clock) } },
        ]
    });
    let marks = format!("Marks at {expired}s and {unknown}s");
    let caption = format!(
        "Oldest leases as of that probe; expired after {expired}s, marked Unknown by kube-controller-manager after {unknown}s"
    );
    table(&caption, &["Node", "Age", &marks, "State"], rows)
}

/// The age of a lease, with a mark where it counts as expired and one where kube-controller-manager
/// marks its node Unknown. Ages in seconds; the class says the colour.
fn age_bar(age: f64, expired_after: f64, unknown_after: f64, class: &str) -> Markup {
    let length = expired_after.max(unknown_after) * LENGTH;
    let percent = |seconds: f64| format!("{:.2}%", 100.0 * (seconds / length).clamp(0.0, 1.0));
    html! {
        svg.bar.(class) aria-hidden="true" {
            rect.track y="25%" width="100%" height="50%" {}
            rect y="25%" width=(percent(age)) height="50%" {}
            @for mark in [expired_after, unknown_after].map(percent) { line x1=(mark) x2=(mark) y2="100%" {} }
        }
    }
}

fn shoots(shoots: &[ShootView]) -> Markup {
    let rows = shoots.iter().map(|shoot| {
        let leases = shoot.found().map(|found| {
            let (tally, ago) = (found.tally, ago(found.seconds_ago));
            let valid = tally.candidates - tally.expired - tally.undecided;
            format!("{valid} of {} valid, {ago}", tally.candidates)
        });
        let next = shoot.probe.as_ref();
        let next = next.map(|probe| ago(-probe.next_probe_in_seconds));
        vec![
            html! { code { (shoot.namespace) } },
            html! { (shoot.state.replace('_', " ")) },
            html! { (leases.unwrap_or_default()) },
            html! { (next.unwrap_or_default()) },
        ]
    });
    let columns = ["Namespace", "State", "Leases", "Next probe"];
    table("Those that need attention first", &columns, rows)
}

fn outages(outages: &VecDeque<Outage>) -> Markup {
    let rows = outages.iter().map(|outage| {
        vec![
            timestamp(outage.began),
            html! { code { (outage.namespace) } },
            html! { (outage.sentence()) },
        ]
    });
    let caption = "The newest first, as this process has observed them";
    table(caption, &["Began", "Shoot", "What"], rows)
}
