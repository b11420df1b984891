//! Watches on connections that give nothing, on tokio's paused clock.

use std::future::{pending, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api_server::{Fault, MemoryApi, Options, When};
use common::metrics::RequestCounter;
use common::transport::Dialer;
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, WatchEvent, WatchParams};
use tokio::io::{copy_bidirectional, duplex};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::bed::{
    KubeconfigFile, TOKEN, ViewBed, give_up, quiet_server, server, soon, version_fails,
};

/// Freezes for good the connections that are open.
type Frost = Arc<Mutex<CancellationToken>>;

/// A client over connections that can be frozen.
async fn client(server: &Arc<MemoryApi>, frost: &Frost) -> Client {
    let (to, frost) = (Arc::clone(server), Arc::clone(frost));
    let dialer = Dialer::new(move |_| {
        let frozen = frost.lock().unwrap().clone();
        ready(to.dial().map(|mut there| {
            let (ours, mut theirs) = duplex(1 << 16);
            tokio::spawn(async move {
                tokio::select! {
                    _ = copy_bidirectional(&mut theirs, &mut there) => {}
                    () = frozen.cancelled() => pending().await,
                }
            });
            ours
        }))
    });
    let file = KubeconfigFile::new(&server.kubeconfig(TOKEN));
    let counter = RequestCounter::default();
    file.connect_by(dialer, &counter).await.unwrap()
}

async fn pass(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_for_four_minutes_is_restarted() {
    // Fault 10
    let (server, frost) = (quiet_server().await, Frost::default());
    let client = client(&server, &frost).await;
    let mut bed = ViewBed::filled(server, client).await;
    // What comes through the watch shows that it has begun.
    bed.create("two");
    bed.changed("two").await;
    std::mem::take(&mut *frost.lock().unwrap()).cancel();
    bed.delete("one");
    // The client gives a watch up after 240 s without a byte.
    pass(230).await;
    let noticed = bed.view.live().now_or_never().is_none();
    assert!(!noticed && bed.view.get("a", "one").is_some());
    pass(11).await;
    bed.asked("list", 2).await;
    bed.changes.recv().await;
    assert_eq!(bed.known(), ["two"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_after_a_request_was_given_up_ends_after_30_s() {
    let server = quiet_server().await;
    let client = client(&server, &Frost::default()).await;
    let secrets: Api<Secret> = Api::all(client.clone());
    let leases: Api<Lease> = Api::all(client.clone());
    let (params, version) = (
        WatchParams::default(),
        server.store().revision().to_string(),
    );
    let mut silent = secrets.watch(&params, &version).await.unwrap().boxed();
    let mut lively = leases.watch(&params, &version).await.unwrap().boxed();
    version_fails(&server, Fault::Stall);
    give_up(&client, Duration::from_secs(1)).await;
    assert!(silent.next().now_or_never().is_none() && lively.next().now_or_never().is_none());
    let lease = serde_json::json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": "a", "name": "one"}});
    server.store().create(lease).unwrap();
    let event = soon(lively.next()).await;
    assert!(matches!(event, Some(Ok(WatchEvent::Added(_)))), "{event:?}");
    pass(29).await;
    assert!(silent.next().now_or_never().is_none(), "too early");
    pass(1).await;
    let end = soon(silent.next()).await;
    assert!(matches!(end, Some(Err(_))), "it is listed again: {end:?}");
    pass(60).await;
    let lives = lively.next().now_or_never().is_none();
    assert!(lives, "its connection lives");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_does_not_begin_is_given_up() {
    let server = server(Options::default()).await;
    let lost = server
        .faults()
        .add(When::verb("watch", "secrets").once(), Fault::Stall);
    let client = client(&server, &Frost::default()).await;
    let bed = ViewBed::of_secrets(server, client);
    soon(bed.server.faults().met(lost, 1)).await;
    pass(31).await;
    bed.asked("watch", 1).await;
    assert_eq!(bed.count("list"), 2);
}
