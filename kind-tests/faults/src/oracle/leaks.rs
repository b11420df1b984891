//! Whether a process uses more and more. Pure.
//!
//! A process is measured after each round. What it used after its first is compared with what it
//! used after its last: in between there were hundreds of outages, thousands of probes and writes.
//! A leak stays, however long one waits, so the least of some measurements counts, and what is
//! under way just then does not.

use std::collections::BTreeMap;

/// How much of each thing a process uses: tasks, sockets, files (descriptors), threads, and
/// `resident_kib` of memory.
pub type Used = BTreeMap<&'static str, u64>;

/// What is no leak. Measured idle, after unneeded connections were cut, a process uses the same; a
/// shoot's connection that is replaced just then is two for a moment.
const ALLOWED: [(&str, u64); 4] = [("tasks", 3), ("sockets", 3), ("files", 3), ("threads", 1)];
/// Of memory, what an allocator keeps after a burst: a tenth more, and 3 MiB. A leading prober was
/// seen to use up to 2.6 MiB more after ten minutes.
const MEMORY_KIB: u64 = 3 * 1024;
const MEMORY_SHARE: u64 = 10;

/// A replica's name, which of its processes it was, and whether that led.
pub type ProcessKey = (&'static str, usize, bool);

/// What the processes used after each round, as far as they lived.
#[derive(Debug, Default)]
pub struct MeasuredUsage(BTreeMap<ProcessKey, Vec<Used>>);

impl MeasuredUsage {
    /// Adds what a process used after a round.
    pub fn add(&mut self, process: ProcessKey, used: Used) {
        self.0.entry(process).or_default().push(used);
    }

    /// What the processes that were measured more than once used at first and at last.
    pub fn comparable(&self) -> impl Iterator<Item = (ProcessKey, &Used, &Used)> {
        self.0
            .iter()
            .filter_map(|(process, times)| match times.as_slice() {
                [first, .., last] => Some((*process, first, last)),
                _ => None,
            })
    }

    /// What has grown: a replica's name, and what of it.
    pub fn leaks(&self) -> Vec<(&'static str, String)> {
        let mut leaks = Vec::new();
        for ((name, ..), first, last) in self.comparable() {
            for (what, was) in first {
                let allowed = ALLOWED.into_iter().find(|(name, _)| name == what);
                let more = allowed.map_or(was / MEMORY_SHARE + MEMORY_KIB, |(_, more)| more);
                if let Some(is) = last.get(what).filter(|is| **is > was + more) {
                    leaks.push((name, format!("{what}: {was} at first, {is} at last")));
                }
            }
        }
        leaks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Used {
        [
            ("tasks", 146),
            ("files", 95),
            ("sockets", 80),
            ("threads", 4),
            ("resident_kib", 22 * 1024),
        ]
        .into()
    }

    fn after(last: &[(&'static str, u64)]) -> Vec<String> {
        let mut usage = MeasuredUsage::default();
        usage.add(("prober-a", 3, true), sound());
        let mut used = sound();
        used.extend(last.iter().copied());
        usage.add(("prober-a", 3, true), used);
        usage.leaks().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn each_thing_that_grows_is_reported_and_what_a_sound_process_uses_more_is_not() {
        for sound in [
            &[][..],
            &[("resident_kib", 26 * 1024)],
            &[("tasks", 148), ("sockets", 82), ("threads", 5)],
            &[("tasks", 12), ("sockets", 9), ("resident_kib", 9 * 1024)],
        ] {
            assert_eq!(after(sound), [""; 0]);
        }
        for (what, was, is) in [
            ("tasks", 146, 150),
            ("sockets", 80, 84),
            ("files", 95, 99),
            ("threads", 4, 6),
        ] {
            assert_eq!(
                after(&[(what, is)]),
                [format!("{what}: {was} at first, {is} at last")]
            );
        }
        assert_eq!(after(&[("resident_kib", 28 * 1024)]).len(), 1);
    }
}
