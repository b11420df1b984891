//! The Secret: rotated, wrong, broken, gone.

use api_server::{Rule, User};
use prober::shoot_client::Budget;
use std::sync::Arc;

use super::shoot::{TOKEN, TestShoot, words};

/// Tells a story of a shoot that was probed with [`TOKEN`].
async fn probed(story: &str) -> TestShoot {
    let mut shoot = TestShoot::start().await;
    shoot.tell("probe: 3 by leases/1").await;
    shoot.tell(&story.replace("TOKEN", TOKEN)).await;
    shoot
}

#[tokio::test]
async fn a_401_fails_the_probe_and_the_next_one_has_the_new_secret() {
    let story = "revoke TOKEN; probe: unauthorized at leases by leases/1; probe: unauthorized at leases by leases/1; \
                 grant new; secret new; probe: 3 by leases/2; connections: 2";
    probed(story).await;
}

#[tokio::test]
async fn missing_rights_are_distinguished_from_missing_leases() {
    // Fault 5
    let mut shoot = TestShoot::start().await;
    let leases = Rule::new("list", "leases.coordination.k8s.io").in_namespace("kube-node-lease");
    for (rules, failure) in [
        (vec![leases], "forbidden at nodes"),
        (vec![], "forbidden at leases"),
    ] {
        let limited = User::limited("probe", rules);
        shoot.api.access().grant(TOKEN, limited);
        let error = shoot.nodes().await.expect_err("no right to list");
        assert_eq!(words(&error), failure);
    }
}

#[tokio::test]
async fn no_secret_asks_nothing_and_a_later_one_heals() {
    let story = "empty secret; probe: kubeconfig at leases by ; \
                 secret TOKEN; probe: 3 by leases/2";
    probed(story).await;
}

#[tokio::test]
async fn a_refused_kubeconfig_asks_nothing() {
    // Faults 13, 14, 16
    let mut shoot = TestShoot::start().await;
    let good = shoot.api.kubeconfig(TOKEN);
    let token = format!("token: {TOKEN}");
    for (given, taken) in [
        (&*token, "exec: {command: /bin/true}"),
        ("https://", "http://"),
    ] {
        let bad = good.replacen(given, taken, 1);
        assert_ne!(bad, good);
        shoot.set_secret(&bad);
        shoot
            .tell("probe: kubeconfig at leases by ; connections: 0")
            .await;
    }
}

#[tokio::test]
async fn a_secret_that_is_rotated_in_the_middle_of_a_probe_counts_from_the_next_one() {
    // Fault 11. One that was written again with the same content changes nothing.
    let mut shoot = probed("secret TOKEN; probe: 3 by leases/1").await;
    let budget = Budget::starting_now(shoot.timeout);
    let secret = Arc::clone(&shoot.secret);
    shoot.client.leases(&secret, budget).await.expect("leases");
    shoot.tell("grant new; secret new").await;
    shoot.client.nodes(budget).await.expect("nodes");
    assert_eq!(
        shoot.asked(),
        "leases/1 nodes/1",
        "it goes on with what it began with"
    );
    shoot
        .tell(&format!(
            "revoke {TOKEN}; probe: 3 by leases/2; probe: 3 by leases/2"
        ))
        .await;
}
