//! The weeder as a process: config, runtime, work.

use std::sync::Arc;

use common::agent_runtime::{AgentRuntime, Endpoints};
use common::config_file::ConfigFile;
use common::flags::{Agent, AgentArgs};
use common::metrics::register_seed_known;
use common::transport::Dialer;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config;
use crate::controller::{Controller, Instruments};

/// The Lease that replicas of the weeder elect their leader by (rule 79).
const LEASE: &str = "dwd-weeder-leader-election";

/// Runs the weeder until `shutdown`. `--kube-api-qps` and `--kube-api-burst` limit nothing here: a
/// start costs a handful of requests, and no recovery waits behind a limiter (D-42).
///
/// # Errors
/// When it cannot start (config file, kubeconfig, ports), or when leadership is lost.
pub async fn run(args: AgentArgs, shutdown: CancellationToken) -> anyhow::Result<()> {
    run_on(Dialer::default(), args, shutdown).await
}

/// The same with another way to the seed.
///
/// # Errors
/// As [`run`].
pub async fn run_on(
    dialer: Dialer,
    args: AgentArgs,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let (config, mut file) = ConfigFile::open(&args.config_file, config::parse)?;
    let mut runtime = AgentRuntime::open(Agent::Weeder, &args, LEASE, dialer).await?;
    file.report_to(&mut runtime.registry, runtime.events.clone());
    let instruments = Instruments {
        events: runtime.events.clone(),
        ..Instruments::default()
    };
    instruments.metrics.register(&mut runtime.registry);
    let (activity, heartbeat) = (instruments.activity.clone(), &instruments.heartbeat);
    let known = heartbeat.ready();
    register_seed_known(&mut runtime.registry, move || (known.ask)().is_ok());
    let (config_sender, configs) = watch::channel(Arc::new(config));
    let (shown, refused) = (configs.clone(), file.refused());
    let endpoints = Endpoints {
        live: vec![heartbeat.live()],
        ready: vec![heartbeat.ready()],
        lookups: Default::default(),
        status: move || activity.status(&shown.borrow(), refused()),
    };
    let controller = Controller::new(
        runtime.client.clone(),
        configs,
        runtime.election.clone(),
        instruments,
    );
    let work = async {
        let reload = async {
            loop {
                config_sender.send_replace(Arc::new(file.next().await));
            }
        };
        tokio::join!(
            controller.run(shutdown.clone()),
            shutdown.run_until_cancelled(reload)
        );
    };
    runtime.run(endpoints, &shutdown, work).await
}
