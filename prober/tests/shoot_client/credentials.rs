//! The Secret: rotated, wrong, broken, gone.

use api_server::{Rule, User};
use prober::shoot_client::Budget;
use testbed::gardener::shoot_probe;

use super::shoot::{LEASES, TOKEN, TestShoot, VERSION, words};

/// A shoot that was probed with [`TOKEN`], which is worth nothing any more.
async fn revoked() -> TestShoot {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot.asked();
    shoot.api.access().grant("new-token", shoot_probe());
    shoot.api.access().revoke(TOKEN);
    shoot
}

#[tokio::test]
async fn a_secret_that_was_written_again_with_the_same_content_changes_nothing() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot.asked();
    shoot.secret.set(&shoot.api.kubeconfig(TOKEN));
    shoot.healthy().await;
    assert_eq!(shoot.asked(), [LEASES]);
    assert_eq!(shoot.api.connections().accepted, 1);
}

#[tokio::test]
async fn credentials_that_are_not_accepted_are_read_again_once_and_the_request_repeated() {
    let mut shoot = revoked().await;
    let kubeconfig = shoot.api.kubeconfig("new-token");
    shoot.secret.set_unnoticed(Some(&kubeconfig));
    shoot.healthy().await;
    assert_eq!(shoot.secret.rereads(), 1);
    assert_eq!(shoot.asked(), [LEASES, LEASES]);
}

#[tokio::test]
async fn credentials_that_stay_wrong_are_unknown_after_one_more_look() {
    let mut shoot = revoked().await;
    assert_eq!(shoot.failed().await, ("leases", "unauthorized"));
    assert_eq!(shoot.secret.rereads(), 1);
    assert_eq!(
        shoot.asked(),
        [LEASES],
        "the same credentials are not tried twice"
    );

    let kubeconfig = shoot.api.kubeconfig("as-wrong");
    shoot.secret.set_unnoticed(Some(&kubeconfig));
    assert_eq!(shoot.failed().await, ("version", "unauthorized"));
    assert_eq!(shoot.secret.rereads(), 2);
    assert_eq!(shoot.asked(), [VERSION, VERSION]);
}

#[tokio::test]
async fn missing_rights_are_distinguished_from_missing_leases() {
    // Fault 5
    let mut shoot = TestShoot::start().await;
    let leases = Rule::new("list", "leases.coordination.k8s.io").in_namespace("kube-node-lease");
    for (rules, stage) in [(vec![leases], "nodes"), (vec![], "leases")] {
        shoot
            .api
            .access()
            .grant(TOKEN, User::limited("probe", rules));
        let error = shoot.nodes().await.expect_err("no right to list");
        assert_eq!(words(&error), (stage, "forbidden"));
    }
    assert_eq!(shoot.secret.rereads(), 0);
}

#[tokio::test]
async fn no_secret_asks_nothing_and_a_later_one_heals() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot.asked();
    shoot.secret.delete();
    assert_eq!(shoot.failed().await, ("kubeconfig", "no_secret"));
    shoot.secret.set_data(None);
    assert_eq!(
        shoot.failed().await,
        ("version", "kubeconfig"),
        "a Secret without the key"
    );
    assert_eq!((shoot.secret.rereads(), shoot.asked().len()), (0, 0));
    shoot.secret.set(&shoot.api.kubeconfig(TOKEN));
    shoot.healthy().await;
}

#[tokio::test]
async fn a_refused_kubeconfig_asks_nothing() {
    // Faults 13, 14, 16
    let mut shoot = TestShoot::start().await;
    let good = shoot.api.kubeconfig(TOKEN);
    let token = format!("token: {TOKEN}");
    let (_, authority) = good
        .split_once("certificate-authority-data: ")
        .expect("one");
    for (given, taken) in [
        (
            &*token,
            "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true}",
        ),
        (&token, "tokenFile: /etc/hostname"),
        (&token, "token: ''"),
        (
            "    server:",
            "    insecure-skip-tls-verify: true\n    server:",
        ),
        ("https://", "http://"),
        (&authority[..4], "%%%%"),
        (&authority[..4], "AAAA"),
    ] {
        let bad = good.replacen(given, taken, 1);
        assert_ne!(bad, good);
        shoot.secret.set(&bad);
        assert_eq!(shoot.failed().await.1, "kubeconfig", "{bad}");
    }
    assert_eq!(shoot.api.connections().accepted, 0);
}

#[tokio::test]
async fn a_secret_that_is_rotated_in_the_middle_of_a_probe_counts_from_the_next_one() {
    // Fault 11
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    let budget = Budget::starting_now(shoot.timeout);
    shoot.client.leases(budget).await.expect("leases");
    shoot.api.access().grant("new-token", shoot_probe());
    shoot.secret.set(&shoot.api.kubeconfig("new-token"));
    shoot.client.nodes(budget).await.expect("nodes");
    let accepted = |shoot: &TestShoot| shoot.api.connections().accepted;
    assert_eq!(
        accepted(&shoot),
        1,
        "the probe goes on with what it began with"
    );
    shoot.api.access().revoke(TOKEN);
    shoot.asked();
    shoot.healthy().await;
    assert_eq!(
        (accepted(&shoot), shoot.secret.rereads()),
        (2, 0),
        "the next one takes the new one"
    );
    shoot.healthy().await;
    assert_eq!(shoot.asked(), [VERSION, LEASES, LEASES]);
}
