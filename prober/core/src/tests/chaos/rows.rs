//! The rows of chaos: kinds of lives, one a line.

use super::plan::Mishap::{
    BlindToClusters, BlindToNamespaces, BlindToSeed, Crash, Edit, LeadFlaps, Moves, Options, Owner,
    Pause, Recreate, Reload, Settings, Stale, Suspend,
};
use super::plan::{ChaosPlan, Leadership, Machines, Silences};

pub struct ChaosRow {
    pub name: &'static str,
    pub plan: ChaosPlan,
}

const fn row(name: &'static str, plan: ChaosPlan) -> ChaosRow {
    ChaosRow { name, plan }
}

/// Outages, Gardener's settings, kubelets with exact clocks, and nothing else.
const PLAIN: ChaosPlan = ChaosPlan {
    life: 2400.0,
    calm: 500.0,
    grace: 40.0,
    interval: 30.0,
    fraction: 0.6,
    initial_delay: 30.0,
    down_delay: 0.0,
    stabilization: 0.0,
    only_held_down: false,
    passivates: false,
    many_dependents: false,
    nodes: (2, 9),
    beat: 10.0,
    stretch: (1.0, 1.04),
    late: 0.0,
    lease_duration: 40,
    skew: |_| 0.0,
    silences: Silences::Outages,
    spares: false,
    churn: false,
    conditions: false,
    routes_go: false,
    machines: Machines::Stay,
    away: false,
    answers: (0.01, 0.05),
    seed: (0.005, 0.05),
    view_lag: 0.3,
    fails: 0.0,
    throttles: false,
    lost: 0.0,
    refuses: false,
    pods_linger: 6.0,
    queue: 0.0,
    leadership: Leadership::One,
    alone: false,
    fresh: false,
    mishaps: &[],
};
const BLIPS: ChaosPlan = ChaosPlan {
    silences: Silences::Blips,
    ..PLAIN
};
const HEALTHY: ChaosPlan = ChaosPlan {
    silences: Silences::None,
    ..PLAIN
};
const NOBODY_LEADS: ChaosPlan = ChaosPlan {
    leadership: Leadership::Nobody,
    ..PLAIN
};
const GO_LEADS: ChaosPlan = ChaosPlan {
    leadership: Leadership::Go,
    ..PLAIN
};
const AWAY: ChaosPlan = ChaosPlan {
    away: true,
    ..HEALTHY
};
const SLOW: ChaosPlan = ChaosPlan {
    answers: (0.05, 1.5),
    seed: (0.05, 1.5),
    view_lag: 2.0,
    ..PLAIN
};
const SLOWISH: ChaosPlan = ChaosPlan {
    answers: (0.01, 0.8),
    seed: (0.01, 0.8),
    view_lag: 2.0,
    ..PLAIN
};
const SEED_SLOW: ChaosPlan = ChaosPlan {
    seed: (0.1, 9.0),
    view_lag: 5.0,
    ..PLAIN
};
const LATE: ChaosPlan = ChaosPlan {
    stretch: (1.5, 2.5),
    late: 4.0,
    ..HEALTHY
};
const FEW: ChaosPlan = ChaosPlan {
    nodes: (1, 4),
    ..PLAIN
};
const CHURN: ChaosPlan = ChaosPlan {
    churn: true,
    conditions: true,
    ..PLAIN
};
const MANY: ChaosPlan = ChaosPlan {
    many_dependents: true,
    ..PLAIN
};
const GRACE_10: ChaosPlan = ChaosPlan {
    grace: 10.0,
    beat: 2.5,
    lease_duration: 10,
    ..PLAIN
};

#[rustfmt::skip]
pub const ROWS: &[ChaosRow] = &[
    row("plain", PLAIN),
    row("slow answers", SLOW),
    row("some nodes spared", ChaosPlan { spares: true, ..PLAIN }),
    row("churn", ChaosPlan { churn: true, ..PLAIN }),
    row("conditions", ChaosPlan { conditions: true, ..PLAIN }),
    row("edits", ChaosPlan { mishaps: &[Edit], ..PLAIN }),
    row("edits, slow", ChaosPlan { mishaps: &[Edit], ..SLOW }),
    row("pauses", ChaosPlan { mishaps: &[Pause], ..PLAIN }),
    row("crashes", ChaosPlan { mishaps: &[Crash], ..PLAIN }),
    row("suspensions", ChaosPlan { mishaps: &[Suspend], ..PLAIN }),
    row("reloads", ChaosPlan { mishaps: &[Reload], ..PLAIN }),
    row("blind to the seed", ChaosPlan { mishaps: &[BlindToSeed], ..PLAIN }),
    row("dependents created again", ChaosPlan { mishaps: &[Recreate], ..PLAIN }),
    row("answers lost", ChaosPlan { lost: 0.3, ..PLAIN }),
    row("writes refused", ChaosPlan { refuses: true, ..PLAIN }),
    row("probes fail", ChaosPlan { fails: 0.2, throttles: true, ..PLAIN }),
    row("away", AWAY),
    row("away, outages", ChaosPlan { away: true, ..PLAIN }),
    row("nobody leads", NOBODY_LEADS),
    row("nobody leads, crashes", ChaosPlan { mishaps: &[Crash], lost: 0.1, ..NOBODY_LEADS }),
    row("levels wait", ChaosPlan { down_delay: 10.0, ..PLAIN }),
    row("pods linger", ChaosPlan { pods_linger: 40.0, ..PLAIN }),
    row("only held down", ChaosPlan { only_held_down: true, mishaps: &[Edit], ..PLAIN }),
    row("stabilization", ChaosPlan { stabilization: 20.0, ..PLAIN }),
    row("half +60", ChaosPlan { skew: |draw| if draw < 0.5 { 60.0 } else { 0.0 }, ..PLAIN }),
    row("half -45", ChaosPlan { skew: |draw| if draw < 0.5 { -45.0 } else { 0.0 }, ..PLAIN }),
    row("half +8", ChaosPlan { skew: |draw| if draw < 0.5 { 8.0 } else { -0.5 }, ..PLAIN }),
    row("late renewals", ChaosPlan { stretch: (1.0, 2.0), late: 2.0, ..PLAIN }),
    row("late, healthy", LATE),
    row("late, healthy, half +60", ChaosPlan { skew: |draw| if draw < 0.5 { 60.0 } else { 0.0 }, ..LATE }),
    row("late, healthy, half -60", ChaosPlan { skew: |draw| if draw < 0.5 { -60.0 } else { 0.0 }, ..LATE }),
    row("all", ChaosPlan { mishaps: &[Edit, Pause, Crash, Suspend, Reload, BlindToSeed, Recreate], lost: 0.1, fails: 0.1, throttles: true, churn: true, conditions: true, spares: true, ..SLOWISH }),
    row("all, nobody leads", ChaosPlan { leadership: Leadership::Nobody, mishaps: &[Pause, Crash, Suspend, Reload, BlindToSeed], lost: 0.1, fails: 0.1, churn: true, conditions: true, spares: true, ..SLOWISH }),
    row("blips", BLIPS),
    row("blips, crashes", ChaosPlan { mishaps: &[Crash], ..BLIPS }),
    row("blips, crashes, alone", ChaosPlan { mishaps: &[Crash], alone: true, ..BLIPS }),
    row("few nodes, churn", ChaosPlan { churn: true, ..FEW }),
    row("few nodes, churn, crashes", ChaosPlan { churn: true, spares: true, mishaps: &[Crash], ..FEW }),
    row("Machines go", ChaosPlan { machines: Machines::Go, ..PLAIN }),
    row("Machines go, few nodes, crashes", ChaosPlan { machines: Machines::Go, mishaps: &[Crash], nodes: (2, 6), ..PLAIN }),
    row("lead flaps", ChaosPlan { mishaps: &[LeadFlaps], ..PLAIN }),
    row("lead flaps, slow", ChaosPlan { mishaps: &[LeadFlaps], answers: (0.1, 1.5), seed: (0.1, 2.0), ..PLAIN }),
    row("Go leads", GO_LEADS),
    row("Go leads, blips", ChaosPlan { leadership: Leadership::Go, ..BLIPS }),
    row("Go leads, edits", ChaosPlan { mishaps: &[Edit], ..GO_LEADS }),
    row("seed slow", SEED_SLOW),
    row("seed slow, edits", ChaosPlan { mishaps: &[Edit], ..SEED_SLOW }),
    row("views lag 20 s", ChaosPlan { view_lag: 20.0, mishaps: &[Crash], ..PLAIN }),
    row("answers take 2 to 12 s", ChaosPlan { answers: (2.0, 12.0), ..PLAIN }),
    row("away, crashes", ChaosPlan { mishaps: &[Crash], ..AWAY }),
    row("away, probes fail", ChaosPlan { fails: 0.1, throttles: true, ..AWAY }),
    row("away, slow", ChaosPlan { answers: (0.1, 3.0), ..AWAY }),
    row("away, suspensions", ChaosPlan { mishaps: &[Suspend, Crash], ..AWAY }),
    row("away, half +60, half -8", ChaosPlan { skew: |draw| if draw < 0.5 { 60.0 } else { -8.0 }, ..AWAY }),
    row("healthy, all", ChaosPlan { silences: Silences::None, machines: Machines::Go, fails: 0.1, mishaps: &[Crash, Reload, Settings, LeadFlaps, Options, BlindToSeed], ..CHURN }),
    row("healthy, few nodes", ChaosPlan { silences: Silences::None, machines: Machines::Go, nodes: (1, 4), fresh: true, mishaps: &[Crash], ..CHURN }),
    row("healthy, bursts", ChaosPlan { stretch: (0.05, 2.4), mishaps: &[Crash], ..HEALTHY }),
    row("healthy, bursts, half +40", ChaosPlan { stretch: (0.05, 2.4), skew: |draw| if draw < 0.5 { 40.0 } else { 0.0 }, ..HEALTHY }),
    row("healthy, grace 10 s", ChaosPlan { silences: Silences::None, mishaps: &[Crash], fails: 0.1, ..GRACE_10 }),
    row("healthy, grace 16 s, beats of 10 s", ChaosPlan { grace: 16.0, mishaps: &[Crash], ..HEALTHY }),
    row("healthy, grace 20 s, beats of 10 s", ChaosPlan { grace: 20.0, mishaps: &[Crash], ..HEALTHY }),
    row("healthy, leases of 4 s, half -8", ChaosPlan { lease_duration: 4, skew: |draw| if draw < 0.5 { -8.0 } else { 0.0 }, mishaps: &[Crash], ..HEALTHY }),
    row("owner", ChaosPlan { mishaps: &[Owner], ..PLAIN }),
    row("owner, crashes, edits", ChaosPlan { mishaps: &[Owner, Crash, Edit], ..PLAIN }),
    row("owner, passivates", ChaosPlan { mishaps: &[Owner], passivates: true, ..PLAIN }),
    row("settings", ChaosPlan { mishaps: &[Settings], ..PLAIN }),
    row("settings, reloads, slow", ChaosPlan { mishaps: &[Settings, Reload], answers: (0.05, 2.5), ..PLAIN }),
    row("options", ChaosPlan { mishaps: &[Options], ..PLAIN }),
    row("options, crashes, edits", ChaosPlan { mishaps: &[Options, Crash, Edit], ..PLAIN }),
    row("many dependents", MANY),
    row("many dependents, edits", ChaosPlan { mishaps: &[Edit], ..MANY }),
    row("many dependents, all", ChaosPlan { mishaps: &[Edit, Pause, Crash, Reload, BlindToSeed, Recreate], lost: 0.1, fails: 0.1, answers: (0.01, 0.8), seed: (0.01, 1.5), ..MANY }),
    row("created shoots, crashes", ChaosPlan { fresh: true, mishaps: &[Crash], ..PLAIN }),
    row("grace 10 s", GRACE_10),
    row("grace 120 s", ChaosPlan { grace: 120.0, life: 7000.0, calm: 1500.0, ..PLAIN }),
    row("grace 600 s", ChaosPlan { grace: 600.0, life: 9000.0, calm: 3000.0, ..PLAIN }),
    row("interval 1 s", ChaosPlan { interval: 1.0, ..PLAIN }),
    row("interval 60 s", ChaosPlan { interval: 60.0, ..PLAIN }),
    row("fraction 0.01", ChaosPlan { fraction: 0.01, ..PLAIN }),
    row("fraction 1", ChaosPlan { fraction: 1.0, spares: true, ..PLAIN }),
    row("no initialDelay, crashes", ChaosPlan { initial_delay: 0.0, mishaps: &[Crash], ..PLAIN }),
    row("interval 1 s, all", ChaosPlan { interval: 1.0, mishaps: &[Edit, Crash], fails: 0.1, lost: 0.1, ..CHURN }),
    row("reloads, lead flaps, probes fail", ChaosPlan { mishaps: &[Reload, LeadFlaps, Settings], fails: 0.2, ..PLAIN }),
    row("nobody leads, blips, pauses", ChaosPlan { leadership: Leadership::Nobody, mishaps: &[Pause], ..BLIPS }),
    row("pauses, crashes", ChaosPlan { mishaps: &[Pause, Crash], ..BLIPS }),
    row("pauses, blind to namespaces", ChaosPlan { mishaps: &[Pause, BlindToNamespaces], ..BLIPS }),
    row("the shoot moves", ChaosPlan { mishaps: &[Moves], ..BLIPS }),
    row("blind to Clusters, the shoot moves", ChaosPlan { mishaps: &[BlindToClusters, Moves], ..BLIPS }),
    row("nobody leads, stale views, pauses", ChaosPlan { mishaps: &[Stale, Pause, Moves], ..NOBODY_LEADS }),
    row("nobody leads, edits", ChaosPlan { mishaps: &[Edit], ..NOBODY_LEADS }),
    row("created again, views lag 20 s", ChaosPlan { view_lag: 20.0, mishaps: &[Recreate], ..BLIPS }),
    row("routes go in outages", ChaosPlan { routes_go: true, ..PLAIN }),
    row("Machines deleted by force", ChaosPlan { machines: Machines::Deleted { nodes_return: false }, ..PLAIN }),
    row("Machines deleted by force, nodes return", ChaosPlan { machines: Machines::Deleted { nodes_return: true }, ..PLAIN }),
    row("Machines go, edits", ChaosPlan { machines: Machines::Go, mishaps: &[Edit], nodes: (2, 5), ..PLAIN }),
    row("healthy, new nodes -60", ChaosPlan { churn: true, skew: |_| -60.0, nodes: (2, 6), fraction: 0.5, ..HEALTHY }),
    row("healthy, leases of 120 s", ChaosPlan { beat: 30.0, lease_duration: 120, mishaps: &[Crash], ..HEALTHY }),
    row("grace 50 s, +60, crashes", ChaosPlan { grace: 50.0, skew: |_| 60.0, mishaps: &[Crash], ..PLAIN }),
    row("no initialDelay, +60, crashes", ChaosPlan { initial_delay: 0.0, skew: |_| 60.0, mishaps: &[Crash], ..PLAIN }),
    row("restores queue, probes fail", ChaosPlan { queue: 60.0, fails: 0.2, ..PLAIN }),
    row("restores queue, away", ChaosPlan { queue: 60.0, away: true, ..PLAIN }),
];
