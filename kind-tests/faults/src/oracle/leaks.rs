//! Whether a process uses more and more.
//!
//! What it uses after the first round of faults is compared with what it uses after the last: in
//! between there were hundreds of outages, thousands of probes and writes.

use std::collections::BTreeMap;

/// How much of each thing a process uses: tasks, files (descriptors), and `resident_kib` of
/// memory.
pub type Used = BTreeMap<&'static str, u64>;

/// A replica's name, which of its processes it was, and whether that led.
pub type ProcessKey = (&'static str, usize, bool);

/// What the processes that were measured used at first and at last.
pub type MeasuredUsage = BTreeMap<ProcessKey, [Used; 2]>;

/// How much more is no leak. Measured idle, after unneeded connections were cut, a process uses the
/// same; a shoot's connection that is replaced just then is two for a moment.
const FEW: u64 = 3;
/// Of memory, what an allocator keeps after a burst: a tenth more, and 3 MiB. A leading prober was
/// seen to use up to 2.6 MiB more after ten minutes.
const MEMORY_KIB: u64 = 3 * 1024;
const MEMORY_SHARE: u64 = 10;

/// What has grown: a replica's name, and what of it.
pub fn leaks(usage: &MeasuredUsage) -> Vec<(&'static str, String)> {
    let mut leaks = Vec::new();
    for ((name, ..), [first, last]) in usage {
        for (what, was) in first {
            let more = match *what {
                "resident_kib" => was / MEMORY_SHARE + MEMORY_KIB,
                _ => FEW,
            };
            if last[what] > was + more {
                let text = format!("{what}: {was} at first, {} at last", last[what]);
                leaks.push((*name, text));
            }
        }
    }
    leaks
}
