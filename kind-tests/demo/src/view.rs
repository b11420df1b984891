//! How a moment looks on a terminal: a pure function from a scene to lines.

use crate::scene::{Scene, ShootScene};
use crate::story::Act;
use crate::world::{Deployment, EXPIRED, GRACE, Node};

/// What the terminal can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub width: usize,
    pub height: usize,
    pub colour: bool,
    /// Whether block characters can be shown.
    pub unicode: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    Bold,
    Dim,
    Green,
    Yellow,
    Red,
    Cyan,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Green => "\x1b[32m",
            Self::Yellow => "\x1b[33m",
            Self::Red => "\x1b[31m",
            Self::Cyan => "\x1b[36m",
        }
    }
}

type Span = (Style, String);
type Line = Vec<Span>;

/// Lines for the whole terminal: at most its height, each at most its width.
pub fn render(scene: &Scene, look: Look) -> Vec<String> {
    let mut lines = header(scene);
    for shoot in &scene.shoots {
        lines.push(Line::new());
        if shoot.in_full {
            lines.extend(in_full(shoot, look));
        } else {
            lines.extend(in_short(shoot, look));
        }
    }
    lines.push(Line::new());
    let room = look.height.saturating_sub(lines.len());
    let events = scene.events.iter().flat_map(|(at, text)| event(*at, text, look.width)).collect::<Vec<_>>();
    lines.extend_from_slice(&events[events.len().saturating_sub(room)..]);
    lines.truncate(look.height);
    lines.into_iter().map(|line| finish(line, look)).collect()
}

fn header(scene: &Scene) -> Vec<Line> {
    let (style, what) = match scene.act {
        Act::Opening => (Style::Plain, "Two probers start and take their first look at every cluster."),
        Act::Peace => (Style::Green, "Peace. Every node renews its lease every 10s, each at its own moment."),
        Act::Outage => (Style::Yellow, "Nodes of cut-off and moving are unheard: dead, or only out of reach?"),
        Act::Leaderless => (Style::Red, "And the leading prober is dead. Its Lease runs on: no other can be elected yet."),
        Act::Rescued => (Style::Cyan, "Protected: who would replace the machines is at rest, the nodes run on."),
        Act::Return => (Style::Yellow, "The network is back. Once enough nodes are heard, all is restored in order."),
        Act::Curtain => (Style::Green, "All is as it was before the outage."),
        Act::Over => (Style::Plain, "The play is over."),
    };
    vec![
        vec![
            (Style::Bold, format!("dependency-watchdog, live{:>8.1}s", scene.now)),
            (Style::Plain, format!("   {}", scene.replicas.join(", "))),
        ],
        vec![(Style::Dim, format!("A node silent for {GRACE:.0}s is given up and its machine replaced: right if it died,"))],
        vec![(Style::Dim, "fatal if only the network broke, for then a healthy cluster is torn down.".into())],
        vec![(style, what.into())],
    ]
}

fn in_full(shoot: &ShootScene, look: Look) -> Vec<Line> {
    let mut lines = vec![title(shoot)];
    let widest = look.width.saturating_sub(28).clamp(10, 60);
    for node in &shoot.nodes {
        let mut line = vec![(Style::Plain, format!("  {:<8}", node.name))];
        line.extend(bar(node.age, widest, look.unicode));
        let told = if node.unknown { "  GIVEN UP" } else { "" };
        line.push((style_of(node), format!(" {:>5.1}s{told}", node.age)));
        lines.push(line);
    }
    lines.extend(shoot.deployments.iter().map(deployment));
    lines.push(vec![countdown(shoot)]);
    lines
}

fn in_short(shoot: &ShootScene, look: Look) -> Vec<Line> {
    let mut leases = vec![(Style::Plain, "  leases".to_owned())];
    for node in &shoot.nodes {
        leases.push((Style::Plain, " ".into()));
        leases.extend(bar(node.age, 6, look.unicode));
    }
    let deployments = shoot.deployments.iter().map(|one| format!("{} {}/{}", initials(&one.name), one.ready, one.wanted));
    leases.push((Style::Plain, format!("  {}", deployments.collect::<Vec<_>>().join("  "))));
    vec![title(shoot), leases]
}

fn title(shoot: &ShootScene) -> Line {
    vec![(Style::Bold, format!("{:<8}", shoot.part.name())), (Style::Plain, format!(" {}", shoot.verdict))]
}

/// A lease's age on a scale that ends where the node would be given up.
fn bar(age: f64, width: usize, unicode: bool) -> Vec<Span> {
    let (full, empty, mark) = if unicode { ("█", "·", "│") } else { ("#", ".", "|") };
    let cells = |seconds: f64| ((seconds / GRACE * width as f64).round().max(0.0) as usize).min(width);
    let (filled, limit) = (cells(age), cells(EXPIRED));
    let rest: String = (filled..width).map(|cell| if cell == limit { mark } else { empty }).collect();
    let style = if age >= GRACE {
        Style::Red
    } else if age >= EXPIRED {
        Style::Yellow
    } else {
        Style::Green
    };
    vec![(style, full.repeat(filled)), (Style::Dim, rest)]
}

fn style_of(node: &Node) -> Style {
    if node.unknown || node.age >= GRACE {
        Style::Red
    } else if node.age >= EXPIRED {
        Style::Yellow
    } else {
        Style::Plain
    }
}

fn deployment(one: &Deployment) -> Line {
    let style = if one.held {
        Style::Cyan
    } else if one.ready < one.wanted || one.wanted == 0 {
        Style::Yellow
    } else {
        Style::Plain
    };
    let mut line = vec![(style, format!("  {:<27}{}/{} ready", one.name, one.ready, one.wanted))];
    if let Some(remembered) = &one.remembered {
        line.push((Style::Cyan, format!("  replicas=\"{remembered}\"")));
    }
    if one.held {
        line.push((Style::Cyan, "  meltdown-protection-active".into()));
    }
    line
}

fn countdown(shoot: &ShootScene) -> Span {
    let given_up = shoot.given_up;
    match shoot.countdown {
        _ if given_up > 0 => (Style::Red, format!("  {given_up} nodes were GIVEN UP, their machines will be replaced")),
        None => (Style::Cyan, "  kube-controller-manager is at rest: no node can be given up".into()),
        Some(left) if left > GRACE - EXPIRED => (Style::Dim, format!("  the oldest lease has {left:.0}s left")),
        Some(left) => (Style::Red, format!("  in {:.1}s kube-controller-manager gives up the first node", left.max(0.0))),
    }
}

/// `kube-controller-manager` is `KCM`.
fn initials(name: &str) -> String {
    name.split('-').filter_map(|word| word.chars().next()).map(|letter| letter.to_ascii_uppercase()).collect()
}

/// One event on as many lines as it takes.
fn event(at: f64, text: &str, width: usize) -> Vec<Line> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() + 9 < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let stamp = |first: bool| if first { format!("{at:>6.1}s ") } else { " ".repeat(8) };
    lines.into_iter().enumerate().map(|(number, line)| vec![(Style::Dim, stamp(number == 0)), (Style::Plain, line)]).collect()
}

/// Cuts a line to the width and paints it.
fn finish(line: Line, look: Look) -> String {
    let (mut out, mut room) = (String::new(), look.width);
    for (style, text) in line {
        let shown: String = text.chars().take(room).collect();
        room -= shown.chars().count();
        if look.colour && style != Style::Plain && !shown.is_empty() {
            out.push_str(style.code());
            out.push_str(&shown);
            out.push_str("\x1b[0m");
        } else {
            out.push_str(&shown);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{DEPENDENTS, NODES, Part};

    const SMALL: Look = Look { width: 80, height: 24, colour: false, unicode: false };

    fn scene(age: f64, held: bool) -> Scene {
        let shoot = |part: Part| ShootScene {
            part,
            nodes: (0..NODES).map(|at| Node { name: format!("node-{at}"), age: age + at as f64, unknown: false }).collect(),
            deployments: DEPENDENTS
                .iter()
                .map(|(name, replicas)| Deployment {
                    name: (*name).to_owned(),
                    wanted: if held { 0 } else { *replicas },
                    ready: if held { 0 } else { *replicas },
                    remembered: held.then(|| replicas.to_string()),
                    held,
                })
                .collect(),
            verdict: "3 of 5 leases expired, 3 make a verdict: the network is at fault: protect".into(),
            countdown: (!held).then_some(GRACE - age - 4.0),
            given_up: 0,
            in_full: part == Part::CutOff,
        };
        let events = (0..40).map(|at| (f64::from(at), format!("event {at} {}", "word ".repeat(30)))).collect();
        let replicas = vec!["prober-a was killed".to_owned(), "prober-b stands by".to_owned()];
        Scene { now: 34.5, act: Act::Outage, replicas, shoots: Part::ALL.map(shoot).into(), events }
    }

    #[test]
    fn every_scene_fits_the_terminal() {
        for (width, height) in [(80, 24), (120, 40), (200, 60), (40, 10), (1, 1), (0, 0)] {
            for age in [0.0, 31.0, 90.0] {
                for held in [false, true] {
                    let lines = render(&scene(age, held), Look { width, height, ..SMALL });
                    assert!(lines.len() <= height, "{} lines in {height}", lines.len());
                    assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
                }
            }
        }
    }

    #[test]
    fn no_headline_is_cut_on_a_small_terminal() {
        for act in [Act::Opening, Act::Peace, Act::Outage, Act::Leaderless, Act::Rescued, Act::Return, Act::Curtain, Act::Over] {
            for line in header(&Scene { act, ..scene(1.0, false) }) {
                let length: usize = line.iter().map(|(_, text)| text.chars().count()).sum();
                assert!(length <= SMALL.width, "{length}: {line:?}");
            }
        }
    }

    #[test]
    fn a_small_terminal_has_room_for_all_shoots_and_the_newest_event() {
        let lines = render(&scene(31.0, true), SMALL);
        for part in Part::ALL {
            assert!(lines.iter().any(|line| line.starts_with(part.name())), "{lines:#?}");
        }
        let newest: String =
            format!("event 39 {}", "word ".repeat(30)).split_whitespace().next_back().unwrap_or_default().to_owned();
        assert!(lines.last().is_some_and(|line| line.contains(&newest)), "{lines:#?}");
    }

    #[test]
    fn a_lease_grows_towards_its_end() {
        let shown = |age: f64| bar(age, 8, false).into_iter().map(|(_, text)| text).collect::<String>();
        assert_eq!(shown(0.0), "......|.");
        assert_eq!(shown(20.0), "####..|.");
        assert_eq!(shown(31.0), "######|.");
        assert_eq!(shown(99.0), "########");
        assert_eq!(shown(-5.0), "......|.", "a clock that is ahead shows an empty bar");
        assert_eq!(
            (bar(29.0, 8, false)[0].0, bar(30.0, 8, false)[0].0, bar(40.0, 8, false)[0].0),
            (Style::Green, Style::Yellow, Style::Red)
        );
    }

    #[test]
    fn annotations_and_the_countdown_are_shown() {
        let held = render(&scene(31.0, true), SMALL).join("\n");
        assert!(held.contains("replicas=\"2\"  meltdown-protection-active"), "{held}");
        assert!(held.contains("at rest"), "{held}");
        let running = render(&scene(31.0, false), SMALL).join("\n");
        assert!(running.contains("in 5.0s kube-controller-manager gives up the first node"), "{running}");
        assert!(running.contains("KCM 2/2  MCM 1/1  CA 1/1"), "{running}");
    }

    #[test]
    fn colours_are_left_out_where_they_are_not_wanted() {
        assert!(!render(&scene(31.0, true), SMALL).join("").contains('\x1b'));
        let coloured = render(&scene(31.0, true), Look { colour: true, ..SMALL }).join("");
        assert_eq!(coloured.matches("\x1b[0m").count() * 2, coloured.matches('\x1b').count(), "every colour ends");
    }
}
