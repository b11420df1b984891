//! Two weeders, of which one weeds.

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};

use super::ground::{Ground, Weeder};
use super::on_ground;
use super::plane::{ETCD, Plane, State};
use crate::election::QUICK;
use crate::election::register::Register;

#[test]
fn when_the_leader_is_killed_or_ends_the_other_weeder_leads_and_weeds() -> Result<()> {
    on_ground(async |bed| {
        let ground = Ground::own(bed).await?;
        let register = Register::of(&ground.seed);
        let first = ground.weeder(&QUICK).await?;
        let one = first.leads().await?;
        ground.watched().await?;
        let second = ground.weeder(&QUICK).await?;
        let plane = Plane::on(&ground, "elected", 1).await?;
        let servers = outage(&plane, &first).await?;
        plane.all("main", State::Ready).await?;
        plane.replaced("apiserver", &servers).await?;
        ensure!(second.identity().is_none(), "both lead");

        // etcd comes back while nobody leads.
        let servers = outage(&plane, &first).await?;
        first.agent.kill().await?;
        plane.all("main", State::Ready).await?;
        plane.service(ETCD, true).await?;
        plane.replaced("apiserver", &servers).await?;
        let two = second.leads().await?;
        let (after_kill, _) = register.next(&[&one]).await?;
        ensure!(after_kill.holder == two, "{after_kill:?}");

        let third = ground.weeder(&QUICK).await?;
        let servers = outage(&plane, &second).await?;
        let status = second.agent.terminate().await?;
        ensure!(status.code() == Some(0), "{status}");
        let three = third.leads().await?;
        let (after_end, released) = register.next(&[&one, &two]).await?;
        ensure!(after_end.holder == three, "{after_end:?}");
        let released = released.context("nobody before")?;
        ensure!(released.holder.is_empty(), "not released: {released:?}");
        plane.all("main", State::Ready).await?;
        plane.replaced("apiserver", &servers).await?;

        // Each deletion came from the one who led when it was asked for.
        let deletes = ground.deletes(&plane.namespace);
        let times = deletes.iter().map(|asked| Ok(asked.at.parse()?)).collect::<Result<Vec<DateTime<Utc>>>>()?;
        let in_turn = times.len() == 3
            && times[0] < after_kill.acquired
            && (after_kill.acquired..=released.renewed).contains(&times[1])
            && times[2] >= after_end.acquired;
        ensure!(in_turn, "{deletes:#?} {after_kill:?} {released:?} {after_end:?}");
        plane.end(3).await
    })
}

/// etcd is gone, and kube-apiserver crash-loops.
async fn outage(plane: &Plane, leader: &Weeder) -> Result<Vec<(String, String)>> {
    plane.all("main", State::NotReady).await?;
    plane.service(ETCD, false).await?;
    leader.rests().await?;
    plane.all("apiserver", State::Crashing).await?;
    plane.pods("apiserver").await
}
