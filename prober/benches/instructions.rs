//! How many instructions the parts of a probe take, as valgrind's callgrind counts them: the same
//! on every machine of a kind, and on a busy one.
//!
//! Without arguments it runs itself under callgrind once for each piece of work; with `run NAME` it
//! does that piece once.

mod bodies;
mod probing;
mod work;

use std::hint::black_box;
use std::process::Command;

use probing::ProbeBench;
use serde_json::json;
use work::PIECES;

/// What only counts are taken of: on a clock most of it is the network's.
const OVER_TLS: &str = "healthy probe over TLS, 100 nodes";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments
        .iter()
        .position(|argument| argument == "run")
        .and_then(|at| arguments.get(at + 1))
    {
        Some(name) => run(name),
        None => count(),
    }
}

fn count() {
    let mut counted = serde_json::Map::new();
    println!("{:<42} {:>16}", "work", "instructions");
    for name in PIECES.iter().map(|(name, _)| *name).chain([OVER_TLS]) {
        let instructions = instructions(name);
        println!("{name:<42} {instructions:>16}");
        counted.insert(name.to_owned(), instructions.into());
    }
    println!(
        "{}",
        json!({"benchmark": "instructions", "figures": counted})
    );
}

/// The instructions that [`measured`] takes for this piece of work.
fn instructions(name: &str) -> u64 {
    let out = std::env::temp_dir().join(format!("callgrind.{}.out", std::process::id()));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*measured*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().expect("a program"))
        .args(["run", name])
        .output()
        .expect("valgrind is installed");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let listing = std::fs::read_to_string(&out).expect("callgrind's listing");
    std::fs::remove_file(&out).ok();
    listing
        .lines()
        .find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
        .expect("a total")
}

fn run(name: &str) {
    if name == OVER_TLS {
        let mut probing = ProbeBench::new(100);
        measured(|| probing.leases());
        return;
    }
    let (_, ground) = PIECES
        .iter()
        .find(|(known, _)| *known == name)
        .expect("a piece of this name");
    let mut piece = ground();
    // A first run is not counted: it finds the functions of shared libraries.
    (piece.work)();
    measured(piece.work);
}

/// What is counted, and nothing else.
#[inline(never)]
fn measured<T>(work: impl FnOnce() -> T) -> T {
    black_box(work())
}
