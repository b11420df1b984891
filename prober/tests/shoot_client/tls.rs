//! What is offered to a server before it is known.

use api_server::hello;
use prober::shoot_client::{Budget, ShootClient};
use tokio::net::TcpListener;

use super::shoot::{Secret, TOKEN, TestShoot};

#[tokio::test]
async fn nothing_older_than_tls_1_2_is_offered_to_a_shoot() {
    let shoot = TestShoot::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let secret = Secret::default();
    secret.set(&shoot.api.kubeconfig_at(&url, TOKEN));
    let mut client = ShootClient::new(shoot.clock, shoot.resources.clone(), secret);
    let (answer, message) = tokio::join!(
        client.leases(Budget::starting_now(shoot.timeout)),
        hello::read_client_hello(&listener)
    );
    let message = message.expect("a message");
    assert!(answer.is_err());
    assert_eq!(
        hello::versions(&message),
        [0x0303, 0x0304],
        "TLS 1.2 and 1.3"
    );
    assert!(
        !message
            .windows(TOKEN.len())
            .any(|window| window == TOKEN.as_bytes())
    );
}
