//! The Secret: rotated, wrong, broken, gone.

use api_server::{Fault, When};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use prober::shoot_client::Budget;
use testbed::gardener::shoot_probe;

use super::shoot::{LEASES, NODES, TOKEN, TestShoot, VERSION};

#[tokio::test]
async fn a_rotated_secret_is_applied_with_the_next_probe() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot.asked();
    shoot.api.access().grant("new-token", shoot_probe());
    shoot.api.access().revoke(TOKEN);
    shoot.secret.set(&shoot.api.kubeconfig("new-token"));
    shoot.healthy().await;
    assert_eq!(shoot.asked(), [VERSION, LEASES]);
    assert_eq!(shoot.secret.rereads(), 0);
    shoot.healthy().await;
    assert_eq!(shoot.asked(), [LEASES]);
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
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot.asked();
    shoot.api.access().grant("new-token", shoot_probe());
    shoot.api.access().revoke(TOKEN);
    shoot
        .secret
        .set_unnoticed(&shoot.api.kubeconfig("new-token"));
    shoot.healthy().await;
    assert_eq!(shoot.secret.rereads(), 1);
    assert_eq!(shoot.asked(), [LEASES, LEASES]);
}

#[tokio::test]
async fn credentials_that_stay_wrong_are_unknown_after_one_more_look() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot.api.access().revoke(TOKEN);
    shoot.asked();
    assert_eq!(shoot.failed().await, ("leases", "unauthorized"));
    assert_eq!(shoot.secret.rereads(), 1);
    assert_eq!(
        shoot.asked(),
        [LEASES],
        "the same credentials are not tried twice"
    );

    shoot
        .secret
        .set_unnoticed(&shoot.api.kubeconfig("as-wrong"));
    assert_eq!(shoot.failed().await, ("version", "unauthorized"));
    assert_eq!(shoot.secret.rereads(), 2);
    assert_eq!(shoot.asked(), [VERSION, VERSION]);
}

#[tokio::test]
async fn missing_rights_are_distinguished_from_missing_leases() {
    // Fault 5
    let mut shoot = TestShoot::start().await;
    let leases_only = api_server::Rule::new("get,list", "leases.coordination.k8s.io")
        .in_namespace("kube-node-lease");
    shoot
        .api
        .access()
        .grant(TOKEN, api_server::User::limited("probe", vec![leases_only]));
    shoot.healthy().await;
    let error = shoot.nodes().await.expect_err("no right to list nodes");
    assert_eq!(super::shoot::words(&error), ("nodes", "forbidden"));
    assert!(shoot.asked().contains(&NODES.to_owned()));
    shoot
        .api
        .access()
        .grant(TOKEN, api_server::User::limited("probe", Vec::new()));
    assert_eq!(shoot.failed().await, ("leases", "forbidden"));
    assert_eq!(shoot.secret.rereads(), 0);
}

#[tokio::test]
async fn no_secret_asks_nothing_and_a_later_one_heals() {
    let mut shoot = TestShoot::start().await;
    shoot.secret.delete();
    assert_eq!(shoot.failed().await, ("kubeconfig", "no_secret"));
    shoot.secret.set_data(None);
    assert_eq!(
        shoot.failed().await.1,
        "kubeconfig",
        "a Secret without the key"
    );
    assert_eq!(
        (shoot.secret.rereads(), shoot.api.connections().accepted),
        (0, 0)
    );
    shoot.secret.set(&shoot.api.kubeconfig(TOKEN));
    shoot.healthy().await;
}

#[tokio::test]
async fn a_secret_that_goes_away_ends_the_probing() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot.secret.delete();
    shoot.asked();
    assert_eq!(shoot.failed().await, ("kubeconfig", "no_secret"));
    assert!(shoot.asked().is_empty());
}

#[tokio::test]
async fn a_wrong_server_and_back_again_heals() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    let right = shoot.api.kubeconfig(TOKEN);
    shoot.secret.set(&right.replace(
        &shoot.api.url(),
        &shoot.api.url().replace("127.0.0.1", "127.0.0.2"),
    ));
    let (stage, category) = shoot.failed().await;
    assert!(
        stage == "version" && ["connect", "timeout"].contains(&category),
        "{stage} {category}"
    );
    shoot.secret.set(&right);
    shoot.healthy().await;
}

#[tokio::test]
async fn certificates_that_cannot_be_read_are_an_error_of_the_kubeconfig() {
    let mut shoot = TestShoot::start().await;
    let good = shoot.api.kubeconfig(TOKEN);
    let (before, rest) = good
        .split_once("certificate-authority-data: ")
        .expect("an authority");
    let (authority, after) = rest.split_once('\n').expect("more lines");
    let whole = String::from_utf8(BASE64_STANDARD.decode(authority).expect("base64")).expect("PEM");
    let spoilt = whole.replacen("MII", "AAA", 1);
    assert_ne!(spoilt, whole);
    let cases = [
        "not a certificate".to_owned(),
        "-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n".to_owned(),
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned(),
        spoilt.clone(),
    ];
    for pem in cases {
        let data = BASE64_STANDARD.encode(&pem);
        shoot.secret.set(&format!(
            "{before}certificate-authority-data: {data}\n{after}"
        ));
        assert_eq!(shoot.failed().await.1, "kubeconfig", "{pem}");
    }
    assert_eq!(shoot.api.connections().accepted, 0);
    for pem in [
        format!("{whole}{whole}"),
        format!("{spoilt}{whole}"),
        whole.replace('\n', "\r\n"),
    ] {
        let data = BASE64_STANDARD.encode(pem);
        shoot.secret.set(&format!(
            "{before}certificate-authority-data: {data}\n{after}"
        ));
        shoot.healthy().await;
    }
}

#[tokio::test]
async fn a_refused_kubeconfig_asks_nothing() {
    // Faults 13, 14, 16
    let mut shoot = TestShoot::start().await;
    let good = shoot.api.kubeconfig(TOKEN);
    for bad in [
        good.replace(
            &format!("token: {TOKEN}"),
            "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true}",
        ),
        good.replace(&format!("token: {TOKEN}"), "tokenFile: /etc/hostname"),
        good.replace(
            "    server:",
            "    insecure-skip-tls-verify: true\n    server:",
        ),
        good.replace("https://", "http://"),
        good.replace(TOKEN, "''"),
    ] {
        assert_ne!(bad, good);
        shoot.secret.set(&bad);
        assert_eq!(shoot.failed().await.1, "kubeconfig", "{bad}");
    }
    assert_eq!(shoot.api.connections().accepted, 0);
}

#[tokio::test]
async fn an_api_server_that_refuses_for_a_moment_is_asked_with_the_same_credentials_again() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot
        .api
        .faults()
        .add(When::request("GET", LEASES).once(), Fault::status(401));
    assert_eq!(shoot.failed().await, ("leases", "unauthorized"));
    shoot.healthy().await;
}

#[tokio::test]
async fn a_secret_that_is_rotated_in_the_middle_of_a_probe_counts_from_the_next_one() {
    // Fault 11
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot.asked();
    let budget = Budget::starting_now(shoot.timeout);
    shoot.client.leases(budget).await.expect("leases");
    shoot.api.access().grant("new-token", shoot_probe());
    shoot.secret.set(&shoot.api.kubeconfig("new-token"));
    shoot.client.nodes(budget).await.expect("nodes");
    let connections = |shoot: &TestShoot| shoot.api.connections().accepted;
    assert_eq!(
        connections(&shoot),
        1,
        "the probe goes on with what it began with"
    );
    shoot.api.access().revoke(TOKEN);
    shoot.healthy().await;
    assert_eq!(
        (connections(&shoot), shoot.secret.rereads()),
        (2, 0),
        "the next one begins with the new one"
    );
}
