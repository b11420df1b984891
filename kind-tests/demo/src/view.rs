//! How a moment looks on a terminal: a pure function from values to lines.

use testbed::seed::Dependent;

use crate::record::{Event, Record, What};
use crate::scene::{Node, Scene, ShootScene};
use crate::world::{EXPIRED, GRACE, REPLICAS};

/// What the terminal can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub width: usize,
    pub height: usize,
    pub colour: bool,
    /// Whether block characters can be shown.
    pub unicode: bool,
}

/// The sequence that begins a style.
type Style = &'static str;
const PLAIN: Style = "";
const BOLD: Style = "\x1b[1m";
const DIM: Style = "\x1b[2m";
const GREEN: Style = "\x1b[32m";
const YELLOW: Style = "\x1b[33m";
const RED: Style = "\x1b[31m";
const CYAN: Style = "\x1b[36m";

type Line = Vec<(Style, String)>;

/// Lines for the whole terminal: at most its height, each at most its width.
pub fn render(record: &Record, scene: &Scene, look: Look) -> Vec<String> {
    let mut lines = header(record, scene);
    for (number, shoot) in scene.shoots.iter().enumerate() {
        let moves_away = shoot.name == "moving" && record.has(What::Migrated);
        let verdict =
            if moves_away { "being migrated: not these probers' business any more".to_owned() } else { shoot.verdict() };
        lines.extend([Line::new(), vec![(BOLD, format!("{:<8}", shoot.name)), (PLAIN, format!(" {verdict}"))]]);
        // The one that is cut off is shown in full.
        lines.extend(if number == 0 { in_full(shoot, look) } else { vec![in_short(shoot, look)] });
    }
    lines.push(Line::new());
    let room = look.height.saturating_sub(lines.len());
    let events: Vec<Line> = record.events.iter().flat_map(|event| told(event, look.width)).collect();
    lines.extend_from_slice(&events[events.len().saturating_sub(room)..]);
    lines.truncate(look.height);
    lines.into_iter().map(|line| finish(line, look)).collect()
}

/// What a part of the play is about, by the event that it begins with.
fn headline(what: What) -> Option<(Style, &'static str)> {
    Some(match what {
        What::Watched => (GREEN, "Peace. Every node renews its lease every 10s, each at its own moment."),
        What::Cut => (YELLOW, "Nodes of cut-off and moving are unheard: dead, or only out of reach?"),
        What::Killed => (RED, "And the leading prober is dead. Its Lease runs on: no other can be elected yet."),
        What::Resting => (CYAN, "Protected: who would replace the machines is at rest, the nodes run on."),
        What::Healed => (YELLOW, "The network is back. Once enough nodes are heard, all is restored in order."),
        What::Restored => (GREEN, "All is as it was before the outage."),
        _ => return None,
    })
}

fn header(record: &Record, scene: &Scene) -> Vec<Line> {
    let replicas = REPLICAS.map(|name| {
        let role = match (record.has(What::Killed) && record.leader() == Some(name), scene.leader == Some(name)) {
            (true, _) => "was killed",
            (false, true) => "leads",
            (false, false) => "stands by",
        };
        format!("{name} {role}")
    });
    let begun = record.events.iter().rev().find_map(|event| headline(event.what));
    let (style, what) = begun.unwrap_or((PLAIN, "Two probers start and take their first look at every cluster."));
    vec![
        vec![(BOLD, format!("dependency-watchdog, live{:>8.1}s", scene.now)), (PLAIN, format!("   {}", replicas.join(", ")))],
        vec![(DIM, format!("A node silent for {GRACE:.0}s is given up and its machine replaced: right if it died,"))],
        vec![(DIM, "fatal if only the network broke, for then a healthy cluster is torn down.".into())],
        vec![(style, what.into())],
    ]
}

fn in_full(shoot: &ShootScene, look: Look) -> Vec<Line> {
    let widest = look.width.saturating_sub(28).clamp(10, 60);
    let node = |node: &Node| {
        let fate = if node.unknown { "  GIVEN UP" } else { "" };
        let mut line = vec![(PLAIN, format!("  {:<8}", node.name))];
        line.extend(bar(node.age, widest, look.unicode));
        line.push((if node.unknown { RED } else { style_of(node.age) }, format!(" {:>5.1}s{fate}", node.age)));
        line
    };
    let deployments = shoot.deployments().map(|(name, _, one)| deployment(name, one));
    shoot.nodes.iter().map(node).chain(deployments).chain([countdown(shoot)]).collect()
}

fn in_short(shoot: &ShootScene, look: Look) -> Line {
    let mut line = vec![(PLAIN, "  leases".to_owned())];
    for node in &shoot.nodes {
        line.push((PLAIN, " ".into()));
        line.extend(bar(node.age, 6, look.unicode));
    }
    for (name, _, one) in shoot.deployments() {
        line.push((PLAIN, format!("  {} {}/{}", initials(name), one.ready, one.replicas)));
    }
    line
}

/// A lease's age on a scale that ends where the node would be given up.
fn bar(age: f64, width: usize, unicode: bool) -> Line {
    let (full, empty, mark) = if unicode { ("█", "·", "│") } else { ("#", ".", "|") };
    let cells = |seconds: f64| ((seconds / GRACE * width as f64).round().max(0.0) as usize).min(width);
    let (filled, limit) = (cells(age), cells(EXPIRED));
    let rest: String = (filled..width).map(|cell| if cell == limit { mark } else { empty }).collect();
    vec![(style_of(age), full.repeat(filled)), (DIM, rest)]
}

fn style_of(age: f64) -> Style {
    match age {
        GRACE.. => RED,
        EXPIRED.. => YELLOW,
        _ => GREEN,
    }
}

fn deployment(name: &str, one: &Dependent) -> Line {
    let held = one.marker.is_some();
    let style = if held {
        CYAN
    } else if one.ready < one.replicas || one.replicas == 0 {
        YELLOW
    } else {
        PLAIN
    };
    let memory = one.memory.iter().map(|memory| (CYAN, format!("  replicas=\"{memory}\"")));
    let marker = held.then(|| (CYAN, "  meltdown-protection-active".to_owned()));
    [(style, format!("  {name:<27}{}/{} ready", one.ready, one.replicas))].into_iter().chain(memory).chain(marker).collect()
}

fn countdown(shoot: &ShootScene) -> Line {
    let given_up = shoot.given_up;
    vec![match shoot.countdown {
        _ if given_up > 0 => (RED, format!("  {given_up} nodes were GIVEN UP, their machines will be replaced")),
        None => (CYAN, "  kube-controller-manager is at rest: no node can be given up".into()),
        Some(left) if left > GRACE - EXPIRED => (DIM, format!("  the oldest lease has {left:.0}s left")),
        Some(left) => (RED, format!("  in {:.1}s kube-controller-manager gives up the first node", left.max(0.0))),
    }]
}

/// `kube-controller-manager` is `KCM`.
fn initials(name: &str) -> String {
    name.split('-').filter_map(|word| word.chars().next()).map(|letter| letter.to_ascii_uppercase()).collect()
}

/// One event on as many lines as it takes.
fn told(event: &Event, width: usize) -> Vec<Line> {
    let stamp = |number: usize| if number == 0 { format!("{:>6.1}s ", event.at) } else { " ".repeat(8) };
    let lines = wrapped(&event.text, width.saturating_sub(9));
    lines.into_iter().enumerate().map(|(number, line)| vec![(DIM, stamp(number)), (PLAIN, line)]).collect()
}

/// Text broken at spaces into lines of at most this width, if no word is longer.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Cuts a line to the width and paints it.
fn finish(line: Line, look: Look) -> String {
    let (mut out, mut room) = (String::new(), look.width);
    for (style, text) in line {
        let shown: String = text.chars().take(room).collect();
        room -= shown.chars().count();
        if look.colour && !style.is_empty() && !shown.is_empty() {
            out.push_str(&format!("{style}{shown}\x1b[0m"));
        } else {
            out.push_str(&shown);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{DEPENDENTS, NODES};

    const SMALL: Look = Look { width: 80, height: 24, colour: false, unicode: false };

    fn shown(age: f64, held: bool, look: Look) -> Vec<String> {
        let node = |at: usize| Node { name: format!("node-{at}"), age: age + at as f64, unknown: false };
        let dependent = |replicas: i64| Dependent {
            replicas: if held { 0 } else { replicas },
            ready: if held { 0 } else { replicas },
            memory: held.then(|| replicas.to_string()),
            marker: held.then(String::new),
        };
        let shoots = ["cut-off", "moving", "healthy"].map(|name| ShootScene {
            name,
            nodes: (0..NODES).map(node).collect(),
            dependents: DEPENDENTS.map(|(_, replicas)| dependent(replicas)),
            countdown: (!held).then_some(GRACE - age - 4.0),
            given_up: 0,
        });
        let mut record = Record::default();
        for at in 0..40 {
            record.note(f64::from(at), What::Aside, "", format!("event {at} {}last-of-{at}", "word ".repeat(30)));
        }
        render(&record, &Scene { now: 34.5, leader: Some("prober-a"), watched: true, shoots }, look)
    }

    #[test]
    fn every_scene_fits_the_terminal() {
        for (width, height) in [(80, 24), (120, 40), (200, 60), (40, 10), (1, 1), (0, 0)] {
            for (age, held) in [(0.0, false), (31.0, false), (31.0, true), (90.0, false), (90.0, true)] {
                let lines = shown(age, held, Look { width, height, ..SMALL });
                assert!(lines.len() <= height, "{} lines in {height}", lines.len());
                assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
            }
        }
    }

    #[test]
    fn no_headline_is_cut_on_a_small_terminal() {
        let parts = [What::Aside, What::Watched, What::Cut, What::Killed, What::Resting, What::Healed, What::Restored];
        for what in parts {
            let mut record = Record::default();
            record.note(0.0, what, "", "");
            assert_eq!(headline(what).is_none(), what == What::Aside);
            for line in header(&record, &Scene::default()) {
                let length: usize = line.iter().map(|(_, text)| text.chars().count()).sum();
                assert!(length <= SMALL.width, "{length}: {line:?}");
            }
        }
    }

    #[test]
    fn a_small_terminal_has_room_for_all_shoots_and_the_newest_event() {
        let lines = shown(31.0, true, SMALL);
        for name in ["cut-off", "moving", "healthy"] {
            assert!(lines.iter().any(|line| line.starts_with(name)), "{lines:#?}");
        }
        assert!(lines.last().is_some_and(|line| line.ends_with("last-of-39")), "{lines:#?}");
    }

    #[test]
    fn a_lease_grows_towards_its_end() {
        let shown = |age: f64| bar(age, 8, false).into_iter().map(|(_, text)| text).collect::<String>();
        let expected = [(0.0, "......|."), (20.0, "####..|."), (31.0, "######|."), (99.0, "########")];
        assert_eq!(expected.map(|(age, _)| shown(age)), expected.map(|(_, shown)| shown));
        assert_eq!(shown(-5.0), "......|.", "a clock that is ahead shows an empty bar");
        assert_eq!([29.0, 30.0, 40.0].map(|age| bar(age, 8, false)[0].0), [GREEN, YELLOW, RED]);
    }

    #[test]
    fn annotations_and_the_countdown_are_shown() {
        let held = shown(31.0, true, SMALL).join("\n");
        assert!(held.contains("replicas=\"2\"  meltdown-protection-active"), "{held}");
        assert!(held.contains("at rest"), "{held}");
        let running = shown(31.0, false, SMALL).join("\n");
        assert!(running.contains("in 5.0s kube-controller-manager gives up the first node"), "{running}");
        assert!(running.contains("KCM 2/2  MCM 1/1  CA 1/1"), "{running}");
    }

    #[test]
    fn colours_are_left_out_where_they_are_not_wanted() {
        assert!(!shown(31.0, true, SMALL).join("").contains('\x1b'));
        let coloured = shown(31.0, true, Look { colour: true, ..SMALL }).join("");
        assert_eq!(coloured.matches("\x1b[0m").count() * 2, coloured.matches('\x1b').count(), "every colour ends");
    }

    #[test]
    fn long_text_is_broken_at_spaces() {
        assert_eq!(wrapped("one two three four", 8), ["one two", "three", "four"]);
        assert_eq!(wrapped("", 8), [""; 0]);
        assert_eq!(wrapped("averylongword x", 4), ["averylongword", "x"]);
    }
}
