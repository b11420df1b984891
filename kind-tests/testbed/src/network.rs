//! A network for one test: loopback, and no DNS servers but the test's own.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Names are looked up in /etc/hosts and DNS alone, whatever else this machine would ask.
const NSSWITCH: &str = "hosts: files dns\n";

/// Runs a test on a thread with network and mount namespaces of its own, where this is
/// /etc/resolv.conf. What the test starts is in there, too.
///
/// A machine without such namespaces skips the test, with a word on stderr: they take root, and `ip`
/// of iproute2.
pub fn with_resolv_conf(resolv_conf: &str, test: impl AsyncFnOnce() + Send) {
    let inside = || {
        let folder = tempfile::tempdir().expect("a folder");
        if let Err(error) = enter(folder.path(), resolv_conf) {
            // Past the test harness, which keeps what a test that passes prints to itself.
            let _ = writeln!(std::io::stderr(), "skipped: {error:#}");
            return;
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(test());
    };
    std::thread::scope(|scope| {
        let ended = scope.spawn(inside).join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Gives this thread its namespaces. Nothing of the machine's own changes.
fn enter(folder: &Path, resolv_conf: &str) -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
        .context("no network and mount namespaces")?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .context("mounts are shared")?;
    for (name, text) in [("resolv.conf", resolv_conf), ("nsswitch.conf", NSSWITCH)] {
        let (file, place) = (folder.join(name), Path::new("/etc").join(name));
        std::fs::write(&file, text)?;
        // The C library needs no nsswitch.conf for this.
        if name == "resolv.conf" || place.exists() {
            mount(Some(&file), &place, none, MsFlags::MS_BIND, none)
                .with_context(|| format!("cannot mount {}", place.display()))?;
        }
    }
    let ip = Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status();
    ensure!(ip.context("no ip")?.success(), "loopback stays down");
    Ok(())
}
