//! The process itself, under the names that every Prometheus client library uses; read from `/proc` when asked for.

use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::param;

#[derive(Debug)]
pub struct ProcessCollector {
    started: f64,
}

#[derive(Debug, PartialEq)]
struct Reading {
    cpu_seconds: f64,
    virtual_bytes: u64,
    resident_bytes: u64,
    open_files: u64,
    max_files: Option<u64>,
}

impl ProcessCollector {
    /// Made at the process's start.
    pub fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: now.as_secs_f64() }
    }
}

impl Reading {
    fn take() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
        let open_files = std::fs::read_dir("/proc/self/fd").ok()?.count() as u64;
        Self::of(&stat, &limits, open_files, param::page_size() as u64, param::clock_ticks_per_second())
    }

    /// `page` and `ticks_per_second` are what `/proc` counts in: arm64 has pages of 4, 16 or 64 KiB.
    fn of(stat: &str, limits: &str, open_files: u64, page: u64, ticks_per_second: u64) -> Option<Self> {
        // The second field is the program's name in parentheses and may hold blanks.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let max_files =
            limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok());
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) as f64 / ticks_per_second as f64,
            virtual_bytes: field(23)?,
            resident_bytes: field(24)? * page,
            open_files,
            max_files,
        })
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let Some(reading) = Reading::take() else { return Ok(()) };
        let mut show = |name: &str, help: &str, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        show("process_cpu_seconds", "Processor time used, in seconds.", &ConstCounter::new(reading.cpu_seconds))?;
        show("process_start_time_seconds", "When the process began, in seconds since 1970.", &ConstGauge::new(self.started))?;
        show("process_virtual_memory_bytes", "Virtual memory.", &ConstGauge::new(reading.virtual_bytes))?;
        show("process_resident_memory_bytes", "Resident memory.", &ConstGauge::new(reading.resident_bytes))?;
        show("process_open_fds", "Open file descriptors.", &ConstGauge::new(reading.open_files))?;
        match reading.max_files {
            Some(max) => show("process_max_fds", "The most file descriptors that may be open.", &ConstGauge::new(max)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_ticks_are_those_of_the_system() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 8 0 100 123456789 40 18446744073709551615 1 1";
        let limits =
            "Limit Soft Limit Hard Limit Units\nMax open files            1024                 4096                 files\n";
        let reading = |page, ticks_per_second| Reading::of(stat, limits, 9, page, ticks_per_second);
        let expected = |cpu_seconds, resident_bytes| {
            Some(Reading { cpu_seconds, virtual_bytes: 123_456_789, resident_bytes, open_files: 9, max_files: Some(1024) })
        };
        assert_eq!(reading(4 << 10, 100), expected(3.0, 160 << 10));
        assert_eq!(reading(64 << 10, 1000), expected(0.3, 2560 << 10));
    }
}
