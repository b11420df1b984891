//! What viewers see: each event as a line and, on a terminal, below them the clusters as they
//! are now.

use std::io::IsTerminal;

use crate::record::DemoRecord;
use crate::scene::{DemoScene, EXPIRED, GRACE, REPLICAS, ShootScene, initials};

/// The sequences that begin a style, and the one that ends it.
const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";
const CYAN: &str = "\x1b[36m";
const PLAIN: &str = "\x1b[0m";
/// How many lines stand below the events.
const BELOW: usize = 6;

/// What is printed.
pub struct Screen {
    /// Whether the clusters are shown, drawn again in place: on a terminal, unless NO_COLOR is set.
    live: bool,
    /// How many events were printed.
    printed: usize,
}

impl Screen {
    pub fn open() -> Self {
        Self {
            live: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
            printed: 0,
        }
    }

    /// The demo as far as it has gone, as text that follows what was shown before.
    pub fn show(&mut self, record: &DemoRecord, scene: &DemoScene) -> String {
        let events = record.events[self.printed..]
            .iter()
            .map(|(at, text)| format!("{at:>6.1}s  {text}"));
        let up = if self.printed > 0 {
            format!("\x1b[{BELOW}A")
        } else {
            String::new()
        };
        self.printed = record.events.len();
        if !self.live {
            return events.map(|line| line + "\n").collect();
        }
        // A narrow terminal is to cut off what is drawn over, not to wrap it.
        let below = view(record, scene).map(|line| format!("\x1b[?7l{line}\x1b[?7h"));
        // Each line clears its own rest; nothing is cleared before, so nothing flickers.
        up + &events
            .chain(below)
            .map(|line| line + "\x1b[K\n")
            .collect::<String>()
    }
}

/// The moment.
fn view(record: &DemoRecord, scene: &DemoScene) -> [String; BELOW] {
    let replicas = REPLICAS.map(|name| match scene.leader {
        _ if record.has("killed") && record.word("leader") == name => format!("{name} was killed"),
        Some(leader) if leader == name => format!("{name} leads"),
        _ => format!("{name} stands by"),
    });
    let [cut_off, moving, healthy] = scene.shoots.each_ref().map(shoot);
    let now = format!("{:>6.1}s  {}", scene.now, replicas.join(", "));
    [
        String::new(),
        now,
        countdown(&scene.shoots[0]),
        cut_off,
        moving,
        healthy,
    ]
}

/// How old the leases are, and how many pods of each controller are ready.
fn shoot(shoot: &ShootScene) -> String {
    let mut line = format!("{:<8}", shoot.name);
    for age in &shoot.ages {
        line += &lease(*age);
    }
    for (name, one) in shoot.deployments() {
        let style = if one.marker.is_some() { CYAN } else { PLAIN };
        line += &format!(
            "{style}  {} {}/{}{PLAIN}",
            initials(name),
            one.ready,
            one.replicas
        );
    }
    line
}

/// A lease's age. It turns yellow when the prober calls it expired, and red when the node may be
/// marked Unknown.
fn lease(age: f64) -> String {
    let style = match age {
        GRACE.. => RED,
        EXPIRED.. => YELLOW,
        _ => GREEN,
    };
    format!("{style}{age:>5.0}s{PLAIN}")
}

fn countdown(shoot: &ShootScene) -> String {
    let ShootScene {
        name,
        unknown_nodes,
        ..
    } = shoot;
    match shoot.countdown {
        _ if *unknown_nodes > 0 => format!(
            "{RED}{name}: {unknown_nodes} nodes are UNKNOWN, their machines will be replaced{PLAIN}"
        ),
        None => format!(
            "{CYAN}{name}: kube-controller-manager is at 0, no node can be marked Unknown{PLAIN}"
        ),
        Some(left) if left > GRACE - EXPIRED => {
            format!("{DIM}{name}: the oldest lease has {left:.0}s left{PLAIN}")
        }
        Some(left) => {
            format!(
                "{RED}{name}: in {left:.1}s kube-controller-manager marks the first node Unknown{PLAIN}"
            )
        }
    }
}
