//! Watches on connections that give nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_server::{Fault, Options, When};
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, WatchEvent, WatchParams};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::bed::{
    TOKEN, ViewBed, client, dropped_after, pass, quiet_server, server, soon, version_fails,
};

/// Passes connections to `target`; those that were open when `frozen` was set stand still for good.
async fn relay(listener: TcpListener, target: SocketAddr, frozen: Arc<AtomicBool>) {
    let mut connections = JoinSet::new();
    while let Ok((mut one, _)) = listener.accept().await {
        let (frozen, old) = (frozen.clone(), !frozen.load(Ordering::Relaxed));
        connections.spawn(async move {
            let mut other = TcpStream::connect(target).await.expect("the server");
            let (mut up, mut down) = (vec![0; 1 << 14], vec![0; 1 << 14]);
            loop {
                let (count, to_server) = tokio::select! {
                    count = one.read(&mut up) => (count.unwrap_or(0), true),
                    count = other.read(&mut down) => (count.unwrap_or(0), false),
                };
                if old && frozen.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
                let done = match (count, to_server) {
                    (0, _) => return,
                    (count, true) => other.write_all(&up[..count]).await,
                    (count, false) => one.write_all(&down[..count]).await,
                };
                if done.is_err() {
                    return;
                }
            }
        });
    }
}

#[tokio::test]
async fn a_watch_that_is_silent_for_four_minutes_is_restarted() {
    // Fault 10
    let server = quiet_server().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let frozen = Arc::new(AtomicBool::new(false));
    let relay = tokio::spawn(relay(listener, server.address(), frozen.clone()));
    let client = client(&server.kubeconfig_at(&url, TOKEN)).await;
    let mut bed = ViewBed::filled(server, client).await;
    // What comes through the watch shows that it has begun.
    bed.create("two");
    bed.changed("two").await;
    frozen.store(true, Ordering::Relaxed);
    bed.delete("one");
    // The relay's kernel answers for it. The client gives a watch up after 240 s without a byte.
    pass(230).await;
    assert!(
        bed.view.live().now_or_never().is_some(),
        "nothing can have been noticed"
    );
    assert!(bed.view.get("a", "one").is_some());
    pass(11).await;
    bed.asked("list", 2).await;
    bed.changes.recv().await;
    assert_eq!(bed.known(), ["two"]);
    relay.abort();
}

#[tokio::test]
async fn a_watch_that_is_silent_after_a_request_was_given_up_ends_after_30_s() {
    let server = quiet_server().await;
    let client = client(&server.kubeconfig(TOKEN)).await;
    let secrets: Api<Secret> = Api::all(client.clone());
    let leases: Api<Lease> = Api::all(client.clone());
    let (params, version) = (
        WatchParams::default(),
        server.store().revision().to_string(),
    );
    let mut silent = secrets.watch(&params, &version).await.unwrap().boxed();
    let mut lively = leases.watch(&params, &version).await.unwrap().boxed();
    let lost = version_fails(&server, Fault::Stall);
    dropped_after(&server, &client, lost, Duration::from_secs(1)).await;
    assert!(silent.next().now_or_never().is_none() && lively.next().now_or_never().is_none());
    let lease = serde_json::json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": "a", "name": "one"}});
    server.store().create(lease).unwrap();
    let event = soon(lively.next()).await;
    assert!(matches!(event, Some(Ok(WatchEvent::Added(_)))), "{event:?}");
    // What the machine takes meanwhile counts, too.
    pass(20).await;
    assert!(silent.next().now_or_never().is_none(), "too early");
    pass(10).await;
    let end = soon(silent.next()).await;
    assert!(matches!(end, Some(Err(_))), "it is listed again: {end:?}");
    pass(60).await;
    assert!(
        lively.next().now_or_never().is_none(),
        "its connection lives"
    );
}

#[tokio::test]
async fn a_watch_without_an_event_or_a_bookmark_goes_on_as_if_nothing_had_been() {
    // As a kube-apiserver that has seen no event of a kind: it sends no bookmark either.
    let server = quiet_server().await;
    let client = client(&server.kubeconfig(TOKEN)).await;
    let mut bed = ViewBed::filled(server, client).await;
    let live_since = bed.view.live_since();
    for watches in 1..4 {
        bed.asked("watch", watches).await;
        // What comes through the watch shows that it has begun.
        let name = watches.to_string();
        bed.create(&name);
        bed.changed(&name).await;
        pass(226).await;
    }
    assert_eq!(
        (bed.view.live_since(), bed.count("list")),
        (live_since, 1),
        "it did not break"
    );
}

#[tokio::test]
async fn a_watch_that_does_not_begin_is_given_up() {
    let server = server(Options::default()).await;
    let lost = server
        .faults()
        .add(When::verb("watch", "secrets").once(), Fault::Stall);
    let client = client(&server.kubeconfig(TOKEN)).await;
    let bed = ViewBed::of_secrets(server, client);
    soon(bed.server.faults().met(lost, 1)).await;
    pass(31).await;
    bed.asked("watch", 1).await;
    assert_eq!(bed.count("list"), 2);
}
