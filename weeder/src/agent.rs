//! The weeder as a process: config, frame, work.

use std::path::Path;
use std::pin::pin;

use common::config_file::ConfigFile;
use common::flags::AgentArgs;
use common::frame::{Checks, Frame};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Loaded};
use crate::weeding::{Instruments, weed};

/// The Lease that replicas of the weeder elect their leader by (rule 79).
const LEASE: &str = "dwd-weeder-leader-election";

/// Runs the weeder until `shutdown`. `--kube-api-qps` and `--kube-api-burst` limit nothing here: a start costs a handful of
/// requests, and no recovery waits behind a limiter (D-42).
///
/// # Errors
/// When it cannot start (config file, kubeconfig, ports), or when leadership is lost.
pub async fn run(args: AgentArgs, shutdown: CancellationToken) -> anyhow::Result<()> {
    let load = |path: &Path| Config::load(path).map(|Loaded { config, warnings }| (config, warnings));
    let (mut config, mut file) = ConfigFile::open(&args.config_file, load)?;
    let mut frame = Frame::open(&args, LEASE).await?;
    file.report_to(&mut frame.registry, frame.events.clone(), frame.home.clone());
    let instruments = Instruments::default();
    instruments.metrics.register(&mut frame.registry);
    let checks = Checks { live: vec![instruments.pulse.live()], ready: vec![instruments.pulse.ready()] };
    let (client, fence) = (frame.client.clone(), frame.fence.clone());
    // A changed config is met as by a new process: its selectors may ask for other pods and Services.
    let work = async {
        loop {
            let ended = shutdown.child_token();
            let weeding = weed(client.clone(), config, fence.clone(), instruments.clone(), ended.clone());
            let mut weeding = pin!(weeding);
            config = tokio::select! {
                () = &mut weeding => return,
                changed = file.next() => changed,
            };
            ended.cancel();
            weeding.await;
        }
    };
    frame.run(checks, work).await
}
