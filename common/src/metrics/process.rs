//! The process itself, under the names that every Prometheus client library uses; read from `/proc` when asked for.

use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Linux counts processor time in hundredths of a second for every program (USER_HZ).
const TICKS_PER_SECOND: f64 = 100.0;
/// Linux's page size on amd64 and, as distributions build it, on arm64.
const PAGE: u64 = 4096;

/// Shows the process.
#[derive(Debug)]
pub struct ProcessCollector {
    started: f64,
}

/// What `/proc/self` says.
struct Reading {
    cpu_seconds: f64,
    virtual_bytes: u64,
    resident_bytes: u64,
    open_files: u64,
    max_files: Option<u64>,
}

impl ProcessCollector {
    /// To be made at the process's start.
    pub fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: now.as_secs_f64() }
    }
}

impl Reading {
    fn take() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The second field is the program's name in parentheses and may hold blanks.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
        let max_files =
            limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok());
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) as f64 / TICKS_PER_SECOND,
            virtual_bytes: field(23)?,
            resident_bytes: field(24)? * PAGE,
            open_files: std::fs::read_dir("/proc/self/fd").ok()?.count() as u64,
            max_files,
        })
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let Some(reading) = Reading::take() else { return Ok(()) };
        let mut show = |name: &str, help: &str, metric: &dyn Shown| metric.show(&mut encoder, name, help);
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

trait Shown {
    fn show(&self, encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str) -> std::fmt::Result;
}

impl<M: EncodeMetric> Shown for M {
    fn show(&self, encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str) -> std::fmt::Result {
        self.encode(encoder.encode_descriptor(name, help, None, self.metric_type())?)
    }
}
