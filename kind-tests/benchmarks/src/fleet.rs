//! Load: what a whole seed full of shoots costs, and how fast the watchdog is when all of them need it at once.

mod bare;
pub mod fill;
mod growth;
mod healthy;
mod heart;
pub mod light;
mod meltdown;
mod start;
mod weeder;

use anyhow::{Result, ensure};
use clap::Subcommand;
use testbed::agent::{Agent, Kind};
use testbed::scenario;
use tokio::runtime::Runtime;

/// The token of the probe in light shoots.
const TOKEN: &str = "light";

/// The benchmarks of load, and the processes that they start beside the watchdog.
#[derive(Subcommand)]
pub enum Benchmark {
    /// Requests, CPU and memory of healthy shoots.
    Healthy(healthy::Options),
    /// All shoots melt down at once, and come back.
    Meltdown(meltdown::Options),
    /// What one shoot more costs.
    Growth(growth::Options),
    /// The weeder's start, and how soon it deletes.
    Weeder(weeder::Options),
    /// The binary's size, and how long it takes to be ready.
    Start(start::Options),
    /// Serves light shoots, steered through standard input.
    #[command(hide = true)]
    LightShoots(light::Plan),
    /// Lists the leases of light shoots and drops the answers.
    #[command(hide = true)]
    BareLoop,
}

/// Runs one.
pub fn run(benchmark: Benchmark) -> Result<()> {
    match benchmark {
        Benchmark::Healthy(options) => scenario(async |bed| healthy::run(bed, options).await),
        Benchmark::Meltdown(options) => scenario(async |bed| meltdown::run(bed, options).await),
        Benchmark::Growth(options) => Runtime::new()?.block_on(growth::run(options)),
        Benchmark::Weeder(options) => scenario(async |bed| weeder::run(bed, options).await),
        Benchmark::Start(options) => scenario(async |bed| start::run(bed, options).await),
        Benchmark::LightShoots(plan) => light::serve(plan),
        Benchmark::BareLoop => bare::run(),
    }
}

/// Starts a prober for light shoots.
fn prober(kubeconfig: &str, plan: &light::Plan) -> Result<Agent> {
    Agent::alone(Kind::Prober, kubeconfig, plan.short_config().as_deref(), &[])
}

/// Ends an agent, which must end well.
async fn end(agent: Agent) -> Result<()> {
    let status = agent.terminate().await?;
    ensure!(status.success(), "the agent ended with {status}");
    Ok(())
}
