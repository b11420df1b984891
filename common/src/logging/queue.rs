//! A bounded queue in front of stderr, and the thread that empties it.
//!
//! Whoever reads stderr may be slow or have stopped; a task that logs must not wait for that (fault
//! 75). When the queue is full, lines are dropped and counted, and the count is the next line
//! written. A closed stderr loses lines and nothing else.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The most bytes queued: a burst of 10,000 lines of 400 bytes (fault 75).
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Lines on their way to stderr. Clones share one queue and one thread, which lives as long as the
/// process.
#[derive(Clone)]
#[must_use = "lines still queued are written by `flush`"]
pub(crate) struct Logging(Arc<LogQueue>);

#[derive(Default)]
struct LogQueue {
    queue: Mutex<Queue>,
    /// Notified when there is something to write, and when all is written.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// With their newlines.
    lines: Vec<u8>,
    dropped: u64,
    /// Whether the thread is writing what it last took.
    writing: bool,
}

impl Queue {
    fn is_done(&self) -> bool {
        self.lines.is_empty() && self.dropped == 0 && !self.writing
    }
}

impl Logging {
    pub(super) fn start(target: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::<LogQueue>::default();
        let writer = Arc::clone(&shared);
        // Nobody joins it: it may hang in a write for ever, and the process must be able to end.
        // `flush` waits for its work instead.
        std::thread::Builder::new()
            .name("log-writer".into())
            .spawn(move || write_all(&writer, target))?;
        Ok(Self(shared))
    }

    /// Waits until all lines are written, but no longer than `limit`: whoever reads stderr may have
    /// stopped.
    pub(crate) fn flush(&self, limit: Duration) {
        self.0
            .changed
            .wait_while_for(&mut self.0.queue.lock(), |queue| !queue.is_done(), limit);
    }

    pub(super) fn write(&self, line: &[u8]) {
        let mut queue = self.0.queue.lock();
        if queue.lines.len() + line.len() > MAX_BYTES {
            queue.dropped += 1;
        } else {
            queue.lines.extend(line);
        }
        drop(queue);
        self.0.changed.notify_all();
    }
}

fn write_all(shared: &LogQueue, mut target: impl Write) {
    loop {
        let mut queue = shared.queue.lock();
        queue.writing = false;
        if queue.is_done() {
            shared.changed.notify_all();
        }
        shared
            .changed
            .wait_while(&mut queue, |queue| queue.is_done());
        let lines = std::mem::take(&mut queue.lines);
        let dropped = std::mem::take(&mut queue.dropped);
        queue.writing = true;
        drop(queue);
        // When stderr is closed there is nowhere left to say so.
        let _ = target.write_all(&lines);
        if dropped > 0 {
            let message = r#"{"level":"warn","logger":"dwd","msg":"log lines dropped, stderr is read too slowly","lines":"#;
            let _ = writeln!(target, "{message}{dropped}}}");
        }
        let _ = target.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    const DEADLINE: Duration = Duration::from_secs(10);

    /// A writer that hands each write over, and so waits until it is taken.
    struct Handing(SyncSender<Vec<u8>>);

    impl Write for Handing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0
                .send(bytes.to_vec())
                .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn handing() -> (Logging, Receiver<Vec<u8>>) {
        let (sender, receiver) = sync_channel(0);
        (Logging::start(Handing(sender)).expect("a thread"), receiver)
    }

    #[test]
    fn lines_arrive_in_their_order() {
        let (queue, receiver) = handing();
        for line in ["a\n", "b\n", "c\n"] {
            queue.write(line.as_bytes());
        }
        let mut arrived = Vec::new();
        while arrived.len() < 6 {
            arrived.extend(receiver.recv_timeout(DEADLINE).expect("lines"));
        }
        assert_eq!(arrived, b"a\nb\nc\n");
        queue.flush(DEADLINE);
        assert!(queue.0.queue.lock().is_done());
    }

    #[test]
    fn a_reader_that_stands_still_costs_lines_and_no_waiting() {
        let (queue, receiver) = handing();
        let lines = 3 * MAX_BYTES / 1024;
        for _ in 0..lines {
            queue.write(&[b'x'; 1024]);
        }
        assert!(queue.0.queue.lock().lines.len() <= MAX_BYTES);
        queue.flush(Duration::ZERO);
        // Once it reads again, it learns how many it missed.
        let mut arrived = 0;
        let missed = loop {
            let lines = receiver.recv_timeout(DEADLINE).expect("lines");
            if lines.starts_with(b"x") {
                arrived += lines.len();
            } else {
                break String::from_utf8(lines).expect("text");
            }
        };
        assert!(arrived >= MAX_BYTES, "{arrived}");
        assert!(missed.contains("dropped"), "{missed}");
    }

    #[test]
    fn a_closed_target_neither_blocks_nor_ends_anything() {
        let (queue, receiver) = handing();
        drop(receiver);
        for _ in 0..100 {
            queue.write(b"lost\n");
        }
        queue.flush(DEADLINE);
        assert!(queue.0.queue.lock().is_done());
    }
}
