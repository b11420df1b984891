use kube::Config as ClientConfig;

use super::*;

#[tokio::test]
async fn a_watch_that_fails_ends_the_work() {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let nowhere = ClientConfig::new("http://127.0.0.1:1".parse().unwrap());
    let client = Client::try_from(nowhere).unwrap();
    let config =
        crate::config::parse("servicesAndDependantSelectors: {etcd: {podSelectors: [{}]}}")
            .unwrap()
            .config;
    let (_keep, configs) = watch::channel(Arc::new(config));
    let mut controller = Controller::new(client, configs, Election::Alone, Instruments::default());
    controller
        .watches
        .tasks
        .spawn(async { panic!("on purpose") });
    let work = tokio::spawn(controller.run(CancellationToken::new()));
    let ended = tokio::time::timeout(std::time::Duration::from_secs(20), work)
        .await
        .expect("it ends");
    assert!(ended.is_err_and(|error| error.is_panic()));
}
