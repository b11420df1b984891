//! The process itself, under the names that every Prometheus client library uses; the kernel is
//! asked when they are.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

#[derive(Debug)]
pub struct ProcessCollector {
    started: f64,
}

impl ProcessCollector {
    /// Made at the process's start.
    pub fn new() -> Self {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            started: now.as_secs_f64(),
        }
    }
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

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut show = |name: &str, help: &str, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        let cpu = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
        show(
            "process_cpu_seconds",
            "Processor time used, in seconds.",
            &ConstCounter::new(cpu.as_secs_f64()),
        )?;
        show(
            "process_start_time_seconds",
            "When the process began, in seconds since 1970.",
            &ConstGauge::new(self.started),
        )?;
        if let Some([virtual_bytes, resident_bytes]) = memory() {
            show(
                "process_virtual_memory_bytes",
                "Virtual memory.",
                &ConstGauge::new(virtual_bytes),
            )?;
            show(
                "process_resident_memory_bytes",
                "Resident memory.",
                &ConstGauge::new(resident_bytes),
            )?;
        }
        if let Ok(open_files) = std::fs::read_dir("/proc/self/fd") {
            show(
                "process_open_fds",
                "Open file descriptors.",
                &ConstGauge::new(open_files.count() as u64),
            )?;
        }
        match getrlimit(Resource::Nofile).current {
            Some(max) => show(
                "process_max_fds",
                "The most file descriptors that may be open.",
                &ConstGauge::new(max),
            ),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_in_bytes() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let kib = |name: &str| -> Option<u64> {
            status.lines().find_map(|line| {
                line.strip_prefix(name)?
                    .trim()
                    .strip_suffix(" kB")?
                    .parse()
                    .ok()
            })
        };
        for (bytes, name) in memory()
            .expect("a Linux")
            .into_iter()
            .zip(["VmSize:", "VmRSS:"])
        {
            let expected = 1024 * kib(name).expect(name);
            // Other tests take and free memory meanwhile.
            assert!(
                bytes > expected / 2 && bytes < expected * 2,
                "{name} {expected} {bytes}"
            );
        }
    }
}
