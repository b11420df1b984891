//! How many instructions the parts of a probe take, as valgrind's callgrind counts them: the same on every machine of a kind, and on a busy
//! one.
//!
//! Without arguments it runs itself under callgrind once for each piece of work; with `run NAME` it does that piece once.

mod bodies;
mod canned;
mod probing;
mod work;

use std::hint::black_box;
use std::process::Command;

use probing::Probing;
use serde_json::json;
use work::Shoot;

const NAMES: [&str; 9] = [
    "decode 5,000 leases, protobuf",
    "decode 5,000 leases, JSON",
    "copy 5,000 leases, protobuf",
    "decode a page of 500 nodes, protobuf",
    "verdict on 5,000 leases and Machines",
    "verdict on 5,000 leases, Machines, nodes",
    "healthy probe computed, 100 nodes",
    "healthy probe computed, 5,000 nodes",
    "healthy probe over TLS, 100 nodes",
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().position(|argument| argument == "run").and_then(|at| arguments.get(at + 1)) {
        Some(name) => run(name),
        None => count(),
    }
}

fn count() {
    let mut counted = serde_json::Map::new();
    println!("{:<42} {:>16}", "work", "instructions");
    for name in NAMES {
        let instructions = instructions(name);
        println!("{name:<42} {instructions:>16}");
        counted.insert(name.to_owned(), instructions.into());
    }
    println!("{}", json!({"benchmark": "instructions", "figures": counted}));
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
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listing = std::fs::read_to_string(&out).expect("callgrind's listing");
    std::fs::remove_file(&out).ok();
    listing.lines().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok()).expect("a total")
}

fn run(name: &str) {
    let large = || Shoot::new(5_000);
    let computed = |count| {
        let mut shoot = Shoot::new(count);
        work::probe(&mut shoot);
        measured(|| black_box(work::probe(&mut shoot)));
    };
    match NAMES.iter().position(|known| *known == name) {
        Some(0) => drop(measured_with(large(), |shoot| work::decode(bodies::PROTOBUF, &shoot.protobuf).len())),
        Some(1) => drop(measured_with(large(), |shoot| work::decode(bodies::JSON, &shoot.json).len())),
        Some(2) => {
            let body = large().protobuf;
            let mut copy = Vec::with_capacity(body.len());
            work::copy(&body, &mut copy);
            measured(|| work::copy(&body, &mut copy));
        }
        Some(3) => drop(measured_with(bodies::nodes_protobuf(500), |body| work::decode_nodes(body).len())),
        Some(4) => drop(measured_with(large(), work::judge)),
        Some(5) => drop(measured_with(large().with_nodes(), work::judge)),
        Some(6) => computed(100),
        Some(7) => computed(5_000),
        Some(8) => {
            let mut probing = Probing::new(100);
            measured(|| probing.leases());
        }
        _ => {
            eprintln!("no such work: {name}");
            std::process::exit(2);
        }
    }
}

/// What is counted, and nothing else.
#[inline(never)]
fn measured<T>(work: impl FnOnce() -> T) -> T {
    black_box(work())
}

/// The same on a ground, and after a first run that is not counted: it finds the functions of shared libraries.
fn measured_with<T, R>(ground: T, work: impl Fn(&T) -> R) -> T {
    work(&ground);
    measured(|| work(black_box(&ground)));
    ground
}
