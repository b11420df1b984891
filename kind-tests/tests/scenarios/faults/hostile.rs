//! A shoot's API server in bad hands. What it answers costs the prober neither its memory, nor a verdict, nor other shoots.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kind_tests::shoot::PATIENCE;
use kind_tests::stand_in::{Script, StandIn};
use kind_tests::{Prober, ProberConfig, Shoot, ShootPlan, scenario};

use crate::{DOWN, UP};

const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
/// What the prober may use beyond what it needed before: one answer of the largest size that is read (32 MiB), twice where a
/// buffer grows, and room for what an allocator keeps.
const ROOM: u64 = 128 << 20;

fn script(head: &str, first: Vec<u8>, then: Option<(Vec<u8>, Duration)>) -> Script {
    let head = format!("{JSON}{head}\r\n").into_bytes();
    Script { first: [head, first].concat(), then }
}

/// A gzip stream that unpacks to this many bytes, each one the same: 258 of them in 13 bits.
fn bomb(size: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = vec![true, true, false];
    let mut push = |code: u16, length: u16| bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
    // A blank, then "as before, 258 times" as often as needed, then the end of the block.
    push(0x30 + 0x20, 8);
    for _ in 0..size / 258 {
        push(0b1100_0101, 8);
        push(0, 5);
    }
    push(0, 7);
    let mut stream = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    stream.extend(bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |sum, &bit| sum << 1 | u8::from(bit))));
    stream.extend([0; 8]);
    stream
}

/// The most memory that a process has had so far, in bytes.
fn peak(prober: &Prober) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", prober.id()))?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("no VmHWM")?;
    let kibibytes: u64 = line.split_whitespace().nth(1).context("no value")?.parse()?;
    Ok(kibibytes << 10)
}

#[test]
fn a_hostile_api_server_costs_neither_memory_nor_a_verdict_nor_other_shoots() -> Result<()> {
    scenario(async |bed| {
        if bed.is_given() {
            eprintln!("skipped: the stand-in's certificate is not one of the given cluster's authority");
            return Ok(());
        }
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "hostile", ShootPlan::default()).await?;
        let other = Shoot::create(bed, &seed, "hostile-other", ShootPlan::default()).await?;
        let prober = Prober::start(&seed, ProberConfig::default()).await?;
        shoot.after_probes(2).await?;
        other.after_probes(2).await?;
        let before = peak(&prober)?;
        let begin = shoot.history().len();
        let bomb = bomb(1 << 28);
        let packed = format!("Content-Encoding: gzip\r\nContent-Length: {}\r\n", bomb.len());
        let piece = vec![b' '; 1 << 16];
        let at_once = Duration::ZERO;
        let scripts = [
            ("a byte at a time", script("Content-Length: 1000\r\n", vec![b'{'], Some((vec![b' '], Duration::from_millis(500))))),
            ("without an end", script("", vec![b'{'], Some((piece.clone(), at_once)))),
            (
                "of a declared size beyond all reason",
                script("Content-Length: 1099511627776\r\n", vec![], Some((piece.clone(), at_once))),
            ),
            ("packed small", script(&packed, bomb, None)),
            ("headers without an end", Script { first: JSON.into(), then: Some((b"X-More: and more\r\n".repeat(100), at_once)) }),
        ];
        let mut last = None;
        for (what, script) in scripts {
            let hostile = StandIn::follow(&bed.authority().await?.issue("hostile")?, script).await?;
            shoot.relay.redirect(hostile.address());
            // From the first one on there is an outage, of which nobody can tell.
            shoot.nodes.cut_all();
            shoot
                .eventually(what, PATIENCE, async || {
                    ensure!(hostile.requests() >= 3, "{} requests", hostile.requests());
                    Ok(())
                })
                .await?;
            shoot.untouched_since(begin)?;
            other.after_probes(1).await?;
            let grown = peak(&prober)?.saturating_sub(before);
            ensure!(grown < ROOM, "an answer {what} has cost {} MiB", grown >> 20);
            last = Some(hostile);
        }
        // Meanwhile others are protected.
        other.nodes.cut_all();
        other.held_down(&DOWN).await?;
        other.nodes.heal_all();
        other.free_at(&UP).await?;
        shoot.untouched_since(begin)?;
        drop(last);
        shoot.relay.redirect(shoot.plane.address());
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        other.end().await?;
        shoot.end().await
    })
}
