//! What a process has used, as Linux counts it.

use std::time::Duration;

use anyhow::{Context, Result};

/// Of utime and stime in /proc/PID/stat: USER_HZ, which is 100 on all architectures that Linux's
/// ABI is kept stable for.
const TICK: Duration = Duration::from_millis(10);

/// What a process has used so far.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Time on CPUs, in user space and in the kernel; exact to 10 ms.
    pub cpu: Duration,
    /// Memory that it holds now (VmRSS), in MiB.
    pub resident: f64,
    /// The most that it ever held (VmHWM), in MiB.
    pub most: f64,
}

impl Usage {
    /// Of this process.
    ///
    /// # Errors
    /// When it has ended.
    pub fn of(id: i32) -> Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The second field is the program's name in parentheses, which may hold anything; utime and
        // stime are the 14th and the 15th.
        let (_, rest) = stat.rsplit_once(')').context("no stat")?;
        let ticks = rest.split_whitespace().skip(11).take(2);
        let ticks: u32 = ticks.filter_map(|ticks| ticks.parse::<u32>().ok()).sum();
        let mib = |key| anyhow::Ok(status(id, key)? as f64 / 1024.0);
        Ok(Self {
            cpu: TICK * ticks,
            resident: mib("VmRSS")?,
            most: mib("VmHWM")?,
        })
    }
}

/// A number that Linux says about a process in /proc/PID/status; memory is in KiB.
///
/// # Errors
/// When the process has ended.
pub fn status(id: i32, key: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let mut words = status.split_whitespace();
    words.find(|word| word.strip_suffix(':') == Some(key));
    let value = words.next().with_context(|| format!("no {key}"))?;
    Ok(value.parse()?)
}
