//! The weeder as a process: config, frame, work.

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
    let Loaded { config, warnings } = Config::load(&args.config_file)?;
    for warning in warnings {
        tracing::warn!(file = %args.config_file.display(), "{warning}");
    }
    let mut frame = Frame::open(&args, LEASE).await?;
    let instruments = Instruments::default();
    instruments.metrics.register(&mut frame.registry);
    let checks = Checks { live: vec![instruments.pulse.live()], ready: vec![instruments.pulse.ready()] };
    let work = weed(frame.client.clone(), config, frame.fence.clone(), instruments, shutdown);
    frame.run(checks, work).await
}
