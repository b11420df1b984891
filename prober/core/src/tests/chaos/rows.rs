//! The rows of chaos: kinds of lives, one a line.

/// After the bar stands in how many lives of 600 something is known to be wrong, until a cure, and why.
pub const ROWS: &str = "
plain
slow answers: slow
some nodes spared
churn
conditions
edits
edits, slow
pauses
crashes
suspensions
reloads
blind to the seed
dependents created again
answers lost: 30 % of writes not answered
writes refused
probes fail: 20 % of probes fail, probes throttled
away: healthy, away
away, outages: away
nobody leads
nobody leads, crashes: nobody leads, crashes, 10 % of writes not answered | 1 of 600: after a start two renewals are seen 11 s late, as of a clock that is behind (D-21)
levels wait
pods linger
only held down: only held down, edits
stabilization
half +60 | 4 of 600: offsets are known to 1.8 s
half -45 | 3 of 600: offsets are known to 1.8 s
half +8: half +8, others -0.5 | 1 of 600: offsets are known to 1.8 s
late renewals: beats stretched 1 to 2, renewals up to 2 s late
late, healthy: beats stretched 1.5 to 2.5, renewals up to 4 s late, healthy
late, healthy, half +60: beats stretched 1.5 to 2.5, renewals up to 4 s late, healthy, half +60
late, healthy, half -60: beats stretched 1.5 to 2.5, renewals up to 4 s late, healthy, half -60 | 27 of 600: taken down at a start (D-21)
all: edits, pauses, crashes, suspensions, reloads, blind to the seed, dependents created again, 10 % of writes not answered, 10 % of probes fail, probes throttled, churn, conditions, some nodes spared, slowish
all, nobody leads: nobody leads, pauses, crashes, suspensions, reloads, blind to the seed, 10 % of writes not answered, 10 % of probes fail, churn, conditions, some nodes spared, slowish
blips
blips, crashes
blips, crashes, alone
few nodes, churn
few nodes, churn, crashes: few nodes, churn, some nodes spared, crashes
Machines go
Machines go, few nodes, crashes: Machines go, 2 to 5 nodes, crashes
lead flaps
lead flaps, slow: lead flaps, answers take 0.1 to 1.5 s, seed takes 0.1 to 2 s
Go leads
Go leads, blips
Go leads, edits
seed slow
seed slow, edits
views lag 20 s: views lag 20 s, crashes
answers take 2 to 12 s
away, crashes: healthy, away, crashes
away, probes fail: healthy, away, 10 % of probes fail, probes throttled
away, slow: healthy, away, answers take 0.1 to 3 s
away, suspensions: healthy, away, suspensions, crashes
away, half +60, half -8: healthy, away, half +60, others -8 | 4 of 600: taken down: half of the clocks are off (D-54)
healthy, all: healthy, churn, conditions, Machines go, 10 % of probes fail, crashes, reloads, settings, lead flaps, options, blind to the seed
healthy, few nodes: healthy, churn, conditions, Machines go, few nodes, created shoots, crashes
healthy, bursts: healthy, beats stretched 0.05 to 2.4, crashes
healthy, bursts, half +40: healthy, beats stretched 0.05 to 2.4, half +40
healthy, grace 10 s: healthy, grace 10 s, beats of 2.5 s, crashes, 10 % of probes fail
healthy, grace 16 s, beats of 10 s: healthy, grace 16 s, crashes
healthy, grace 20 s, beats of 10 s: healthy, grace 20 s, crashes
healthy, leases of 4 s, half -8: healthy, leases of 4 s, half -8, crashes
owner
owner, crashes, edits
settings
settings, reloads, slow: settings, reloads, answers take 0.05 to 2.5 s
options
options, crashes, edits
many dependents
many dependents, edits
many dependents, all: many dependents, edits, pauses, crashes, reloads, blind to the seed, dependents created again, 10 % of writes not answered, 10 % of probes fail, answers take 0.01 to 0.8 s, seed takes 0.01 to 1.5 s
created shoots, crashes
grace 10 s: grace 10 s, beats of 2.5 s
grace 120 s: grace 120 s, life of 7000 s with 1500 s of calm
grace 600 s: grace 600 s, life of 9000 s with 3000 s of calm
interval 1 s
interval 60 s
fraction 0.01
fraction 1: fraction 1, some nodes spared
no initialDelay, crashes
interval 1 s, all: interval 1 s, edits, crashes, 10 % of probes fail, 10 % of writes not answered, churn, conditions
reloads, lead flaps, probes fail: reloads, lead flaps, settings, 20 % of probes fail
nobody leads, blips, pauses
pauses, crashes: blips, pauses, crashes
pauses, blind: blips, pauses, blind to the seed
the shoot moves: blips, the shoot moves
blind, the shoot moves: blips, blind to the seed, the shoot moves
nobody leads, stale views, pauses: nobody leads, stale views, pauses, the shoot moves
nobody leads, edits
created again, views lag 20 s: blips, views lag 20 s, dependents created again
routes go in outages
Machines go, edits: Machines go, edits, 2 to 4 nodes
healthy, new nodes -60: healthy, churn, clocks -60, 2 to 5 nodes, fraction 0.5
healthy, leases of 120 s: healthy, beats of 30 s, crashes
grace 50 s, +60, crashes: grace 50 s, clocks +60, crashes | 14 of 600: after a start offsets are known to a gap between probes
no initialDelay, +60, crashes: no initialDelay, clocks +60, crashes | 5 of 600: the same, and who gains the lead goes on with a restore
restores queue, probes fail: restores queue, 20 % of probes fail | 2 of 600: a probe is recent for twice 5 s, and the next one hangs
restores queue, away
";
