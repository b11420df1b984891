//! What a process has used, as Linux counts it.

use std::time::Duration;

use anyhow::{Context, Result};

/// Of utime and stime in /proc/PID/stat: USER_HZ, which is 100 on all architectures that Linux's ABI is kept stable for.
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
    pub fn of(id: i32) -> Result<Self> {
        let read =
            |file: &str| std::fs::read_to_string(format!("/proc/{id}/{file}")).with_context(|| format!("process {id} has ended"));
        let (stat, status) = (read("stat")?, read("status")?);
        // The second field is the program's name in parentheses, which may hold anything; utime and stime are the 14th and the
        // 15th.
        let (_, rest) = stat.rsplit_once(')').context("no stat")?;
        let ticks: u32 = rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u32>().ok()).sum();
        let mib = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).with_context(|| format!("no {key}"))?;
            let kib: f64 = line.split_whitespace().next().unwrap_or_default().parse()?;
            anyhow::Ok(kib / 1024.0)
        };
        Ok(Self { cpu: TICK * ticks, resident: mib("VmRSS:")?, most: mib("VmHWM:")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_own_usage() {
        let usage = Usage::of(std::process::id().try_into().unwrap()).unwrap();
        assert!(usage.resident > 0.5 && usage.most >= usage.resident, "{usage:?}");
        assert!(Usage::of(0).is_err());
    }
}
