//! What the watchdog is for: the nodes of two shoots lose their way, and only where it may act no
//! machine is lost.

use anyhow::{Result, ensure};
use testbed::gardener::PAUSE;
use testbed::scenario;

use crate::journal::{FAILED, GONE, UNKNOWN};
use crate::world::{COUNT, MachineWorld, USUAL, seed};

#[test]
fn outage_costs_machines_only_unwatched() -> Result<()> {
    scenario(async |bed| {
        println!(
            "\nTwo clusters of three machines each, every part real but the VMs, start. This takes most of a minute."
        );
        let (seed, _prober) = seed(bed).await?;
        let (watched, paused) = tokio::try_join!(
            MachineWorld::create(bed, &seed, "watched"),
            MachineWorld::create(bed, &seed, "paused")
        )?;
        let namespace = format!("/api/v1/namespaces/{}", paused.shoot.namespace);
        seed.api().annotate(&namespace, PAUSE, Some("true")).await?;
        // The annotation is known when the prober next looks.
        paused.shoot.after_probes(1).await?;
        let (serving, failing) = tokio::try_join!(watched.service(), paused.service())?;
        let (ours, theirs) = (watched.names(), paused.names());
        let [from, from_there] = [&watched, &paused].map(|world| world.machines.steps().len());
        let none_harmed = || {
            let harm = watched.machines.ever(from, &[UNKNOWN, FAILED, GONE]);
            let lost = serving.endpoints().lost.clone();
            ensure!(
                harm.is_empty() && lost.is_empty() && watched.cloud.names()? == ours,
                "harmed: {harm:?}, endpoints that were not ready: {lost:?}\n{}",
                watched.story()
            );
            anyhow::Ok(())
        };

        println!(
            "\nThe watchdog protects \"watched\"; in \"paused\" it may only look on.\n\
             The way from the nodes to their API servers is cut. Every machine is healthy, and stays so."
        );
        watched.cloud.cut(true).await;
        paused.cloud.cut(true).await;
        let unserved = async || {
            let ready = failing.endpoints().ready();
            ensure!(ready == 0, "{ready} of {COUNT} are");
            Ok(())
        };
        let what = "where the watchdog is paused no pod is left in its Service";
        paused.eventually(what, unserved).await?;
        println!("\nThe Service of \"paused\" has lost its {COUNT} endpoints.");
        let replaced = async || {
            let (now, vms) = (paused.names(), paused.cloud.names()?);
            let replaced = !theirs.is_subset(&vms) && !now.is_subset(&theirs);
            ensure!(replaced, "VMs: {vms:?}, Machines: {now:?}");
            Ok(())
        };
        let what = "where the watchdog is paused a healthy machine is deleted and another ordered";
        paused.eventually(what, replaced).await?;
        watched.shoot.held_down(&USUAL).await?;
        let pods = [
            &watched.kube_controller_manager,
            &watched.machine_controller_manager,
        ];
        let ended = async || {
            ensure!(!pods.iter().any(|pod| pod.is_running()), "they still run");
            Ok(())
        };
        let what = "nobody is left to replace a machine";
        watched.eventually(what, ended).await?;
        none_harmed()?;

        println!("\nThe way is open again.");
        watched.cloud.cut(false).await;
        paused.cloud.cut(false).await;
        let all_run = async || {
            watched.all_run()?;
            paused.all_run()
        };
        watched.eventually("all machines run", all_run).await?;
        watched.shoot.free_at(&USUAL).await?;
        none_harmed()?;
        println!(
            "\nHealthy machines replaced: {} of {COUNT} in \"paused\", 0 in \"watched\".",
            paused.machines.ever(from_there, &[FAILED]).len(),
        );
        watched.shoot.nothing_was_forbidden()?;
        paused.shoot.nothing_was_forbidden()
    })
}
