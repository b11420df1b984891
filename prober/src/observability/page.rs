//! The prober's status for people.

use std::collections::VecDeque;

use common::status::{Status, ago, table, timestamp};
use maud::{Markup, html};

use super::facts::{Fact, lease_cells};
use super::outage::Outage;
use super::status::ProberStatus;
use super::view::{Found, ShootView};

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
            // What is older fills it.
            html! {
                meter max=(unknown.max(expired) * 1.5) low=(expired) high=(unknown) optimum="0" value=(lease.age_seconds) {}
                " " (age)
            },
            html! { span.(tone) { (state) } @if !clock.is_empty() { ", clock " (clock) } },
        ]
    });
    let caption = format!(
        "Oldest leases as of that probe; expired after {expired}s, marked Unknown by kube-controller-manager after {unknown}s"
    );
    table(&caption, &["Node", "Age", "State"], rows)
}

fn shoots(shoots: &[ShootView]) -> Markup {
    let rows = shoots.iter().map(|shoot| {
        let leases = shoot.found().map(|found| {
            let (tally, ago) = (found.tally, ago(found.seconds_ago));
            format!("{} of {} expired, {ago}", tally.expired, tally.candidates)
        });
        vec![
            html! { code { (shoot.namespace) } },
            html! { (shoot.state.replace('_', " ")) },
            html! { (leases.unwrap_or_default()) },
        ]
    });
    let columns = ["Namespace", "State", "Leases"];
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
