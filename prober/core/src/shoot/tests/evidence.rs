//! D-52: a write rests on evidence that is newer than what it changes.

use super::*;

#[test]
fn raised_goes_down_at_once() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("soon", "outage; 0.9 kcm raised; 1.9", "writes from 0.5: 0.9 kcm 0; probes from 0.9: 0.9, 1.9"),
        ("later", "outage; 3.9 kcm raised; 4.9", "writes from 0.5: 3.9 kcm 0; probes from 3.9: 3.9, 4.9"),
        ("at the end", "outage; 6.9 kcm raised; 7.9", "writes from 0.5: 6.9 kcm 0; probes from 6.9: 6.9, 7.9"),
        ("an earlier probe is no evidence", "outage, mcm alone; 0.9 probes hang, settings; 2 mcm raised; 2.5 probes answered, permits held, answer 0.9; 2.5 permit mcm; 2.5", "0 mcm 0, 2.5 mcm 0; probes from 0.9: 0.9, 2.5"),
    ];
    tell(rows);
}

#[test]
fn editor_is_probed_for_rarely() {
    let mut leader = begin("outage, mcm alone");
    for tenth in 0..350 {
        leader.until(7.0 + f64::from(tenth) / 10.0);
        leader.show(MCM, |mcm| *mcm = running(1));
    }
    assert_eq!(leader.probes(7.0)[..5], [7.0, 8.0, 9.0, 19.0, 29.0]);
    let keeps = Report::KeepsChanging(MCM);
    let reported = leader.when(|action| *action == Action::Report(keeps.clone()));
    assert_eq!(reported[0], 9.0, "at the fourth");
}

#[test]
fn editor_delays_no_later_outage() {
    let mut leader = begin("outage");
    for second in 7..17 {
        leader.until(f64::from(second));
        leader.show(MCM, |mcm| *mcm = running(1));
    }
    leader.then("17 nodes back; 30 silent from 30 s, pods linger; 65");
    let expected = "verdicts from 17: ScaleUp, ScaleDown; probes from 58: 58.101, 59.101, 60.101, 61.101, 62.101, 63.101";
    assert_eq!(leader.comes_to(expected), expected);
}

#[test]
fn newer_is_believed_before_the_view() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("an answer", "outage, views lag; 30", "0 mcm 0, 0 kcm 0"),
        ("versions are numbers", "outage, views lag; -10 version 8, mcm same; 30", "0 mcm 0, 0 kcm 0; bases: 9, 1"),
        ("something before the write is shown only now", "outage, views lag; -10 version 8, mcm same; 5 version 8, mcm unready; 30 version 10, mcm at 2; 31", "0 mcm 0, 0 kcm 0, 30 mcm 0 of 2"),
        ("an older read: the seed comes back from a backup", "outage, writes held, version 900, mcm same; 1 version 500, mcm same; 1 conflict mcm; 3", "bases: 901, 501"),
        ("a view that stays older", "outage, version 900; 10 version 500, mcm undone; 306", "0 mcm 0, 0 kcm 0, 301 mcm 0"),
    ];
    tell(rows);
}

#[test]
fn new_leader_protects_at_once() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("and restores once the Clusters are read", "outage, standby; 0.9 lead, Clusters unread; 1.4 nodes back; 30 Clusters read; 31", "0.9 mcm 0, 0.9 kcm 0, 30 kcm 1, 30 mcm 1; verdicts: ScaleUp, ScaleDown, ScaleUp"),
    ];
    tell(rows);
}
