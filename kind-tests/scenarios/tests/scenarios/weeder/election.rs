//! Two weeders, of which one weeds.

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};

use super::ground::Ground;
use super::on_ground;
use super::plane::{ETCD, Plane, PodPhase};
use crate::QUICK;
use crate::election::register::Register;
use crate::election::{identity, leading};
use crate::instruments::served;

#[test]
fn when_the_leader_is_killed_or_ends_the_other_weeder_leads_and_weeds() -> Result<()> {
    on_ground(async |bed| {
        let ground = Ground::own(bed).await?;
        let register = Register::of(&ground.seed);
        let first = ground.leader(&QUICK).await?;
        let one = leading(&first).await?;
        let second = ground.weeder(&QUICK).await?;
        served("Weeder", first.log_file(), second.log_file()).await?;
        let plane = Plane::on(&ground, "elected", 1).await?;
        let servers = plane.outage(Some(&first)).await?;
        plane.recovery(&servers).await?;
        ensure!(identity(&second).is_none(), "both lead");

        // etcd comes back while nobody leads.
        let servers = plane.outage(Some(&first)).await?;
        first.kill().await?;
        plane.all("main", PodPhase::Ready).await?;
        plane.service(ETCD, true).await?;
        plane.replaced("apiserver", &servers).await?;
        let two = leading(&second).await?;
        let (after_kill, _) = register.next(&[&one]).await?;
        ensure!(after_kill.holder == two, "{after_kill:?}");

        let third = ground.weeder(&QUICK).await?;
        let servers = plane.outage(Some(&second)).await?;
        let status = second.terminate().await?;
        ensure!(status.code() == Some(0), "{status}");
        let three = leading(&third).await?;
        let (after_end, released) = register.next(&[&one, &two]).await?;
        ensure!(after_end.holder == three, "{after_end:?}");
        let released = released.context("nobody before")?;
        ensure!(released.holder.is_empty(), "not released: {released:?}");
        plane.recovery(&servers).await?;

        // Each deletion came from the one who led when it was asked for.
        let deletes = ground.deletes(&plane.namespace);
        let times = deletes
            .iter()
            .map(|asked| Ok(asked.at.parse()?))
            .collect::<Result<Vec<DateTime<Utc>>>>()?;
        let in_turn = times.len() == 3
            && times[0] < after_kill.acquired
            && (after_kill.acquired..=released.renewed).contains(&times[1])
            && times[2] >= after_end.acquired;
        ensure!(
            in_turn,
            "{deletes:#?} {after_kill:?} {released:?} {after_end:?}"
        );
        // The other one saw that recovery before it led.
        let late = times[1] - after_kill.acquired;
        println!(
            "deleted {} ms after leadership was gained",
            late.num_milliseconds()
        );
        ensure!(
            late < TimeDelta::seconds(2),
            "first windows open later: {late}"
        );
        plane.end(3).await
    })
}
