//! The process itself, under the names that every Prometheus client library uses. The kernel is
//! asked at each scrape.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::computed::{register_computed, register_metric};

/// To be called at the process's start.
pub(crate) fn register(registry: &mut Registry) {
    let help = "Processor time used, in seconds.";
    register_metric(registry, "process_cpu_seconds", help, || {
        let used = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).ok()?;
        Some(ConstCounter::new(used.as_secs_f64()))
    });
    let started = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let help = "When the process began, in seconds since 1970.";
    register_metric(registry, "process_start_time_seconds", help, move || {
        Some(ConstGauge::new(started?.as_secs_f64()))
    });
    let name = "process_virtual_memory_bytes";
    register_computed(registry, name, "Virtual memory.", || Some(memory()?[0]));
    let name = "process_resident_memory_bytes";
    register_computed(registry, name, "Resident memory.", || Some(memory()?[1]));
    let help = "Open file descriptors.";
    register_computed(registry, "process_open_fds", help, || {
        Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64)
    });
    let help = "The most file descriptors that may be open.";
    register_computed(registry, "process_max_fds", help, || {
        getrlimit(Resource::Nofile).current
    });
}

/// The bytes of virtual and of resident memory. The kernel counts in pages: arm64 has some of 4, 16
/// or 64 KiB.
fn memory() -> Option<[u64; 2]> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = statm
        .split_whitespace()
        .map_while(|pages| pages.parse::<u64>().ok());
    Some([pages.next()?, pages.next()?].map(|pages| pages * page_size() as u64))
}
