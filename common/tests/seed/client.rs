//! The client for the seed's API server.

use std::future::ready;
use std::time::Duration;

use api_server::{Fault, MemoryApi, Options, When};
use common::logging::with_causes;
use common::metrics::{Registry, RequestCounter};
use common::transport::Dialer;
use futures::future::join_all;
use kube::Client;
use serde_json::json;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::bed::{
    KubeconfigFile, TOKEN, answer, client, give_up, pass, server, soon, version_fails,
};

async fn usual_server() -> Arc<MemoryApi> {
    server(Options::default()).await
}

/// A server, its kubeconfig in a file, and a client of that.
async fn connected() -> (Arc<MemoryApi>, KubeconfigFile, Client) {
    connected_counting(&RequestCounter::default()).await
}

/// The same; requests are counted. They need no socket.
async fn connected_counting(counter: &RequestCounter) -> (Arc<MemoryApi>, KubeconfigFile, Client) {
    let server = usual_server().await;
    let file = KubeconfigFile::new(&server.kubeconfig(TOKEN));
    let to = Arc::clone(&server);
    let dialer = Dialer::new(move |_| ready(to.dial()));
    let client = file.connect_by(dialer, counter).await.unwrap();
    (server, file, client)
}

#[tokio::test(start_paused = true)]
async fn every_answer_and_every_lack_of_one_is_counted() {
    let mut registry = Registry::default();
    let counter = RequestCounter::register(&mut registry);
    let (server, _, client) = connected_counting(&counter).await;
    for fault in [Fault::status(409), Fault::CloseBefore] {
        version_fails(&server, fault);
        client.apiserver_version().await.unwrap_err();
    }
    version_fails(&server, Fault::Stall);
    give_up(&client, Duration::from_millis(1)).await;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for (code, count) in [("409", 1), ("<error>", 2)] {
        let line = format!(
            "rest_client_requests_total{{code=\"{code}\",method=\"GET\",host=\"{}\"}} {count}\n",
            server.address()
        );
        assert!(text.contains(&line), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_request_that_was_given_up_no_kept_connection_is_used() {
    const KEPT: u64 = 4;
    // A request that nobody wants any more, and one that has had its time: the network has forgotten
    // them all, and tells nobody.
    for (waited, new) in [(100, 0), (1000, 1)] {
        let (server, _, client) = connected().await;
        let all = CancellationToken::new();
        let asked = When::request("GET", "/version").times(KEPT);
        let held = server.faults().add(asked, Fault::Hold(all.clone()));
        let release = async {
            server.faults().met(held, KEPT).await;
            all.cancel();
        };
        let requests = join_all((0..KEPT).map(|_| client.apiserver_version()));
        let (answers, ()) = tokio::join!(requests, release);
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(server.connections().accepted, KEPT, "one for each");
        let forgotten = When::matches(|record| record.connection <= KEPT);
        let lost = server.faults().add(forgotten, Fault::Stall);
        give_up(&client, Duration::from_millis(waited)).await;
        if new == 0 {
            server.faults().remove(lost);
        }
        for _ in 0..KEPT {
            soon(client.apiserver_version()).await.unwrap();
        }
        // The new one is kept in turn.
        assert_eq!(server.connections().accepted, KEPT + new);
    }
}

#[tokio::test]
async fn a_seed_that_redirects_is_not_followed_with_credentials() {
    let (server, _, client) = connected().await;
    let elsewhere = usual_server().await;
    let location = format!("{}/version", elsewhere.url());
    for code in [301, 302, 303, 307, 308] {
        version_fails(&server, answer(code, &[("location", &location)], ""));
        let error = client.apiserver_version().await.unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(!said.contains(TOKEN), "{said}");
    }
    assert_eq!(
        (
            elsewhere.requests().total(),
            elsewhere.connections().accepted
        ),
        (0, 0)
    );
}

#[tokio::test]
async fn no_error_of_a_kubeconfig_quotes_it() {
    let server = usual_server().await;
    let good = server.kubeconfig(TOKEN);
    let proxy = format!("    proxy-url: ftp://user:{TOKEN}@127.0.0.1:1\n    server:");
    for (part, broken) in [
        ("users:", "users: ]"),
        ("data: ", "data: bm90IGEgY2VydGlmaWNhdGU="),
        ("server: https://", "server: https://user:"),
        ("current-context: it", "current-context: other"),
        (
            "    token:",
            "    client-certificate-data: AAAA\n    token:",
        ),
        ("    server:", &proxy),
    ] {
        let file = KubeconfigFile::new(&good.replace(part, broken));
        let error = file.error().await;
        let said = format!("{error:#} {error:?}");
        assert!(!said.contains(TOKEN), "{said}");
    }
}

/// A user whose credentials are what a shell script prints, with a secret in its arguments and its
/// environment.
fn plugin_of(script: &str) -> String {
    let plugin = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": ["-c", script, "hidden-argument"],
        "env": [{ "name": "TOKEN", "value": "hidden-word" }], "interactiveMode": "Never",
    });
    format!("exec: {plugin}")
}

/// A shell script that prints an ExecCredential with this token.
fn printing(token: &str, expires: Option<&str>) -> String {
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": { "token": token, "expirationTimestamp": expires },
    });
    format!("cat <<'END'\n{credential}\nEND\n")
}

/// The kubeconfig of a server, whose user is another one.
fn kubeconfig_of(server: &MemoryApi, user: &str) -> String {
    server
        .kubeconfig(TOKEN)
        .replace(&format!("token: {TOKEN}"), user)
}

/// Each way to give this token to a user, with the name that an error has for it.
fn users_of(token: &str, folder: &TempDir) -> [(&'static str, String); 5] {
    let file = folder.path().join("token");
    std::fs::write(&file, token).unwrap();
    let oidc = json!({ "name": "oidc", "config": { "id-token": token } });
    [
        ("user.token", format!("token: {}", json!(token))),
        ("user.tokenFile", format!("tokenFile: {}", file.display())),
        ("id-token", format!("auth-provider: {oidc}")),
        ("exec plugin", plugin_of(&printing(token, None))),
        (
            "exec plugin",
            plugin_of(&printing(token, Some("2099-01-01T00:00:00Z"))),
        ),
    ]
}

#[tokio::test]
async fn a_line_break_at_the_end_of_a_token_is_none_of_it() {
    let (server, folder) = (usual_server().await, TempDir::new().unwrap());
    for (_, user) in users_of(&format!("{TOKEN}\n"), &folder) {
        let version = client(&kubeconfig_of(&server, &user))
            .await
            .apiserver_version()
            .await;
        assert!(version.is_ok(), "{user}: {version:?}");
    }
}

/// Replaces the kubeconfig by one that is refused with this name, after which the client goes on
/// with what was known.
async fn refused(
    bad: &str,
    name: &str,
    (server, file, client): &(Arc<MemoryApi>, KubeconfigFile, Client),
) {
    file.write(bad);
    let error = file.connect().await.err().expect(name);
    let said = format!("{error:#} {error:?}");
    assert!(said.contains(name) && !said.contains("s3cr3t"), "{said}");
    // A request is not answered, so that what leads to the seed is read again.
    pass(1).await;
    version_fails(server, Fault::CloseBefore);
    client.apiserver_version().await.expect_err("no answer");
    client
        .apiserver_version()
        .await
        .expect("on another connection");
}

#[tokio::test]
async fn a_token_that_no_header_can_carry_is_refused_by_name_and_what_was_known_stays() {
    let bed = connected().await;
    for (name, user) in users_of("s3cr3t\u{1}", &bed.1.folder) {
        refused(&kubeconfig_of(&bed.0, &user), name, &bed).await;
    }
}

#[tokio::test]
async fn a_server_without_scheme_or_host_is_refused_and_what_was_known_stays() {
    let bed = connected().await;
    let url = bed.0.url();
    for bad in [
        url.trim_start_matches("https://"),
        "localhost",
        "/path",
        "ftp://localhost",
    ] {
        let bad = bed.0.kubeconfig(TOKEN).replace(&url, bad);
        refused(&bad, "cluster.server", &bed).await;
    }
}

#[tokio::test]
async fn a_token_file_is_read_again_each_minute() {
    let (server, folder) = (usual_server().await, TempDir::new().unwrap());
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let client = client(&kubeconfig_of(
        &server,
        &format!("tokenFile: {}", file.display()),
    ))
    .await;
    for (content, is_accepted) in [("", true), ("expired\n", false), (TOKEN, true)] {
        std::fs::write(&file, content).unwrap();
        pass(60).await;
        let version = client.apiserver_version().await;
        assert_eq!(version.is_ok(), is_accepted, "{content}: {version:?}");
    }
}

#[tokio::test]
async fn an_exec_plugin_that_fails_says_why_and_shows_no_secret() {
    let server = usual_server().await;
    let file = KubeconfigFile::new("");
    let ran = file.folder.path().join("ran");
    let fails = "echo hidden-answer; echo no login >&2; exit 3";
    let once = printing(TOKEN, Some("2020-01-01T00:00:00Z"));
    let works_once = format!(
        "if mkdir {} 2>/dev/null; then {once}else {fails}; fi",
        ran.display()
    );
    for (script, expected) in [
        (fails, "exec plugin failed (exit status: 3): no login"),
        (
            "echo hidden-answer: [",
            "exec plugin printed no ExecCredential",
        ),
        (
            "echo '{status: {clientCertificateData: hidden-answer, clientKeyData: hidden-answer}}'",
            "the exec plugin's clientCertificateData holds no certificate in PEM",
        ),
        (&works_once, "exec plugin failed (exit status: 3): no login"),
    ] {
        file.write(&kubeconfig_of(&server, &plugin_of(script)));
        let error = file.error().await;
        let said = format!("{error:#} {error:?}");
        assert!(
            said.contains(expected) && !said.contains("hidden") && !said.contains(TOKEN),
            "{said}"
        );
    }
    assert!(ran.exists(), "also the one that worked at first");
}

#[tokio::test]
async fn an_authority_that_was_rotated_is_read_again_once_the_seed_cannot_be_reached() {
    let (server, before) = (usual_server().await, usual_server().await);
    // So is a token that is not accepted.
    for outdated in [
        before.kubeconfig_at(&server.url(), TOKEN),
        server.kubeconfig("expired"),
    ] {
        let file = KubeconfigFile::new(&outdated);
        let client = file.connect().await.unwrap();
        // In a file that does not exist for a moment, as when it is replaced, nothing is found.
        std::fs::remove_file(&file.path).unwrap();
        for _ in 0..2 {
            pass(1).await;
            client
                .apiserver_version()
                .await
                .expect_err("it is outdated");
        }
        file.write(&server.kubeconfig(TOKEN));
        pass(1).await;
        let late = client.apiserver_version().await;
        late.expect_err("with what was read before");
        client.apiserver_version().await.expect("with the new one");
    }
}

#[tokio::test]
async fn what_a_seed_asks_for_in_a_header_is_in_the_error() {
    let (server, _, client) = connected().await;
    let status = r#"{"kind": "Status", "status": "Failure", "message": "storage is (re)initializing", "code": 429}"#;
    for (body, message) in [("busy", "busy"), (status, "storage is (re)initializing")] {
        version_fails(&server, answer(429, &[("retry-after", "3")], body));
        let error = client.apiserver_version().await.unwrap_err();
        let kube::Error::Api(status) = error else {
            panic!("{error:?}")
        };
        assert_eq!((status.code, &*status.message), (429, message));
        assert_eq!(
            status.details.map(|details| details.retry_after_seconds),
            Some(3)
        );
    }
}

#[tokio::test]
async fn an_error_of_a_connection_names_the_address() {
    let server = usual_server().await;
    let cut = When::request("GET", "/version");
    server.faults().add(cut, Fault::CloseBefore);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    for (address, why) in [
        (nobody, "client error (Connect): tcp connect error: "),
        (server.address(), "client error (SendRequest): "),
    ] {
        let url = format!("https://user:{TOKEN}@{address}");
        let client = client(&server.kubeconfig_at(&url, TOKEN)).await;
        let error = with_causes(&client.apiserver_version().await.unwrap_err());
        let named = format!("no answer from {address}: {why}");
        assert!(error.contains(&named) && !error.contains(TOKEN), "{error}");
    }
}

#[tokio::test]
async fn a_seed_that_floods_with_1xx_responses_is_given_up() {
    let server = usual_server().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let flood = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        while stream
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
            .await
            .is_ok()
        {}
    });
    let client = client(&server.kubeconfig_at(&url, TOKEN)).await;
    let error = soon(client.apiserver_version()).await.unwrap_err();
    let limit = "more than 262144 bytes came before the head of an answer";
    assert!(with_causes(&error).ends_with(limit), "{error:?}");
    flood.await.unwrap();
}
