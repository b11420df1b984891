//! The replica of the prober that answers, and what is said where none does.

use api_server::{Fault, Network, When};
use testbed::gardener::PROTECTED;

use crate::world::{ASKING, ONE, World, file, holds, line, stderr, until_holds};

const COMMANDS: [&str; 3] = [
    "status",
    "explain shoot--dev--one",
    "restore shoot--dev--one",
];

/// The way to a replica.
fn way(pod: &str) -> When {
    let path = format!("/api/v1/namespaces/garden/pods/{pod}/portforward");
    When::request("GET", &path)
}

#[tokio::test]
async fn the_leader_answers_or_else_another_replica() {
    let mut world = World::new(&[ONE]).await;
    // By their names the leader is the second.
    for pod in ["prober-b", "prober-a"] {
        world.join(pod).await;
        let page = async || world.page(pod, "/statusz.json").await;
        let probed = ["\"verdict\":\"scale_up\"", "\"leader\":\"prober-b_"];
        until_holds(&probed, page).await;
    }
    world.may(ASKING);
    let answered = async |by: &str| {
        let shown = world.text("status").await;
        holds(line(&shown, ONE), &["probed"]);
        holds(line(&shown, "Prober:"), &[by]);
        shown
    };
    let shown = answered(" prober-b (leading, version ").await;
    assert!(!shown.contains("Silent:"), "{shown}");

    let faults = world.seed.faults();
    faults.add(way("prober-b"), Fault::Stall);
    let shown = answered(" prober-a (waiting, version ").await;
    holds(line(&shown, "Silent:"), &["prober-b: no answer in 5 s"]);
    holds(line(&shown, "Leader:"), &["prober-b_"]);

    // Where nobody is known to lead any is asked.
    let lease = When::verb("get", "leases.coordination.k8s.io");
    faults.add(lease, Fault::status(403));
    let shown = answered(" prober-a (waiting, version ").await;
    assert!(!shown.contains("Silent:"), "{shown}");

    faults.add(way("prober-a"), Fault::status(403));
    let nobody = [
        "error: no prober answers (prober-a: ",
        "scripted fault",
        "; prober-b: no answer in 5 s)",
    ];
    holds(&world.refused("status").await, &nobody);
}

#[tokio::test]
async fn without_a_prober_they_say_how_to_list_what_is_held_down() {
    let world = World::new(&[ONE]).await;
    world.hold_down(ONE);
    let run_book = file("docs/run-books/DependencyWatchdogProtectionActive.md");
    let nobody = "error: no prober answers (the Deployment dependency-watchdog-prober in garden has no pods). Deployments that are held down:\n  ";
    for words in COMMANDS {
        let output = world.run(words).await;
        assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]));
        let told = stderr(&output);
        let command = told.strip_prefix(nobody).expect(&told);
        let marker = PROTECTED.replace('.', "\\.");
        holds(command, &[format!("?(@.metadata.annotations.{marker})")]);
        // Those of the pages are run in another test.
        holds(&run_book, &[command]);
    }
    let mut asked = world.asked().into_iter();
    let beyond = asked.find(|record| record.is_write() || record.status == Some(403));
    assert_eq!(beyond, None);
    let nowhere = world.refused("explain a --address 127.0.0.1:1").await;
    let refused = "error: no prober answers (127.0.0.1:1: Connection refused";
    holds(&nowhere, &[refused]);
}

#[tokio::test]
async fn a_seed_that_does_not_answer_is_named() {
    let world = World::new(&[ONE]).await;
    let unread = "the Deployment dependency-watchdog-prober in garden cannot be read: ";
    let named = format!("no answer from {}: ", world.seed.address());
    for network in [Network::Refused, Network::Silent] {
        world.seed.set_network(network);
        let [status, explain, restore] = COMMANDS.map(|words| world.refused(words));
        let (status, explain, restore) = tokio::join!(status, explain, restore);
        for told in [status, explain, restore] {
            holds(&told, &["error: no ", unread, &named]);
        }
    }
}

#[tokio::test]
async fn every_command_takes_the_context_that_it_is_told() {
    let world = World::probed(&[ONE]).await;
    let elsewhere = "clusters:\n- {name: nowhere, cluster: {server: 'https://127.0.0.1:1'}}";
    let other = "contexts:\n- {name: other, context: {cluster: nowhere}}";
    let both = world.seed.kubeconfig("operator");
    let both = both.replace("current-context: it", "current-context: other");
    let both = both.replace("clusters:", elsewhere);
    let both = both.replace("contexts:", other);
    let file = world.write("operator", &both);
    let gone = format!("error: there is no context \"gone\" in kubeconfig {file}\n");
    for words in COMMANDS {
        world.text(&format!("{words} --context it")).await;
        world.refused(words).await;
        let told = world.refused(&format!("{words} --context gone")).await;
        assert_eq!(told, gone);
    }
}
