//! Whether a process uses more and more. Pure.
//!
//! A process is measured at each rest. What it used at its first rest is compared with what it used at its last: in between there
//! were hundreds of outages, thousands of probes and writes. A leak stays, however long one waits, so the least of some
//! measurements at a rest counts, and what is under way just then does not.

use std::collections::BTreeMap;

use crate::agents::vitals::Vitals;

/// What growth is none. Measured at rest, after unneeded connections were cut, a process uses the same; a shoot's connection that is
/// replaced just then is two for a moment.
const TASKS: u64 = 3;
const SOCKETS: u64 = 3;
const FILES: u64 = 3;
const THREADS: u64 = 1;
/// What an allocator keeps after a burst: a tenth more, and 3 MiB. A leading prober was seen to use up to 2.6 MiB more after ten
/// minutes.
const MEMORY_KIB: u64 = 3 * 1024;
const MEMORY_SHARE: u64 = 10;

/// What a process used at its first rest and at its last.
#[derive(Clone, Debug)]
pub struct Growth {
    pub first: Vitals,
    pub last: Vitals,
    pub rests: u32,
    /// Resident memory at each rest, in KiB.
    pub memory: Vec<u64>,
}

/// The growth of all processes; by replica, which of its processes it was, and whether it led.
pub type Growths = BTreeMap<(String, usize, bool), Growth>;

/// Whether some process that led was measured more than once, so that growth can be told.
pub fn comparable(growths: &Growths) -> bool {
    growths.iter().any(|((_, _, leads), growth)| *leads && growth.rests > 1)
}

/// Takes in what a process used at a rest.
pub fn rested(growths: &mut Growths, name: &str, vitals: Vitals) {
    let key = (name.to_owned(), vitals.serial, vitals.leads);
    let growth = growths.entry(key).or_insert(Growth { first: vitals, last: vitals, rests: 0, memory: Vec::new() });
    (growth.last, growth.rests) = (vitals, growth.rests + 1);
    growth.memory.push(vitals.resident_kib);
}

impl Growth {
    /// What has grown, in words.
    pub fn judge(&self) -> Vec<String> {
        let Self { first, last, .. } = self;
        let memory = first.resident_kib + first.resident_kib / MEMORY_SHARE + MEMORY_KIB;
        let all = [
            ("tasks", first.tasks, last.tasks, first.tasks + TASKS),
            ("sockets", first.sockets, last.sockets, first.sockets + SOCKETS),
            ("file descriptors", first.files, last.files, first.files + FILES),
            ("threads", first.threads, last.threads, first.threads + THREADS),
            ("KiB of memory", first.resident_kib, last.resident_kib, memory),
        ];
        let grown = all.iter().filter(|(_, _, is, limit)| is > limit);
        grown.map(|(what, was, is, _)| format!("{was} {what} at its first rest, {is} at its last")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: Vitals =
        Vitals { serial: 3, tasks: 146, files: 95, sockets: 80, threads: 4, resident_kib: 22 * 1024, leads: true, panics: 0 };

    fn after(change: fn(&mut Vitals)) -> Vec<String> {
        let mut growths = Growths::new();
        let mut last = SOUND;
        rested(&mut growths, "prober-a", SOUND);
        change(&mut last);
        rested(&mut growths, "prober-a", last);
        growths.values().flat_map(Growth::judge).collect()
    }

    #[test]
    fn a_process_that_uses_about_the_same_has_no_leak() {
        assert_eq!(after(|_| ()), [""; 0]);
        assert_eq!(after(|last| last.resident_kib += 4 * 1024), [""; 0]);
        assert_eq!(after(|last| (last.tasks, last.sockets, last.threads) = (148, 82, 5)), [""; 0]);
        assert_eq!(after(|last| (last.tasks, last.sockets, last.resident_kib) = (12, 9, 9 * 1024)), [""; 0]);
    }

    #[test]
    fn each_thing_that_grows_is_told() {
        assert_eq!(after(|last| last.tasks += 4), ["146 tasks at its first rest, 150 at its last"]);
        assert_eq!(after(|last| last.sockets += 4), ["80 sockets at its first rest, 84 at its last"]);
        assert_eq!(after(|last| last.files += 4), ["95 file descriptors at its first rest, 99 at its last"]);
        assert_eq!(after(|last| last.threads += 2).len(), 1);
        assert_eq!(after(|last| last.resident_kib += 6 * 1024).len(), 1);
    }

    #[test]
    fn only_the_same_process_in_the_same_office_is_compared() {
        let mut growths = Growths::new();
        rested(&mut growths, "prober-a", SOUND);
        rested(&mut growths, "prober-a", Vitals { serial: 4, tasks: 500, ..SOUND });
        rested(&mut growths, "prober-b", Vitals { tasks: 500, ..SOUND });
        rested(&mut growths, "prober-a", Vitals { leads: false, tasks: 500, ..SOUND });
        assert!(!comparable(&growths) && growths.values().all(|growth| growth.judge().is_empty()));
        rested(&mut growths, "prober-a", SOUND);
        assert!(comparable(&growths));
    }
}
