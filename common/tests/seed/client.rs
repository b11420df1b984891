//! The client for the seed's API server.

use std::time::Duration;

use api_server::{Fault, MemoryApi, Options, When};
use common::logging::with_causes;
use common::metrics::{Registry, RequestCounter};
use futures::future::join_all;
use kube::Client;
use serde_json::json;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::bed::{
    KubeconfigFile, TOKEN, answer, client, dropped_after, pass, server, soon, version_fails,
};

async fn usual_server() -> Arc<MemoryApi> {
    server(Options::default()).await
}

/// A server, its kubeconfig in a file, and a client of that.
async fn connected() -> (Arc<MemoryApi>, KubeconfigFile, Client) {
    let server = usual_server().await;
    let file = KubeconfigFile::new(&server.kubeconfig(TOKEN));
    let client = file.connect().await.unwrap();
    (server, file, client)
}

#[tokio::test]
async fn every_answer_and_every_lack_of_one_is_counted() {
    let server = usual_server().await;
    let mut registry = Registry::default();
    let file = KubeconfigFile::new(&server.kubeconfig(TOKEN));
    let counter = RequestCounter::register(&mut registry);
    let client = file.counted(&counter).await.unwrap();
    for fault in [Fault::status(409), Fault::CloseBefore] {
        version_fails(&server, fault);
        client.apiserver_version().await.unwrap_err();
    }
    let late = version_fails(&server, Fault::Stall);
    // Whoever waited for it gives it up.
    dropped_after(&server, &client, late, Duration::ZERO).await;
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

const KEPT: u64 = 4;

/// A server, and a client with so many kept connections to it.
async fn kept() -> (Arc<MemoryApi>, Client) {
    let (server, _, client) = connected().await;
    let all = CancellationToken::new();
    let asked = When::request("GET", "/version").times(KEPT);
    let held = server.faults().add(asked, Fault::Hold(all.clone()));
    let release = async {
        server.faults().met(held, KEPT).await;
        all.cancel();
    };
    let (answers, ()) = tokio::join!(
        join_all((0..KEPT).map(|_| client.apiserver_version())),
        release
    );
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(
        server.connections().accepted,
        KEPT,
        "each has a connection of its own"
    );
    (server, client)
}

#[tokio::test]
async fn after_a_request_that_was_given_up_no_kept_connection_is_used() {
    let (server, client) = kept().await;
    // The network forgets them all, and tells nobody.
    let lost = server.faults().add(
        When::matches(|record| record.connection <= KEPT),
        Fault::Stall,
    );
    dropped_after(&server, &client, lost, Duration::from_secs(1)).await;
    for _ in 0..KEPT {
        soon(client.apiserver_version()).await.unwrap();
    }
    let seen = (server.faults().hits(lost), server.connections().accepted);
    assert_eq!(seen, (1, KEPT + 1), "one, which is kept in turn");
}

#[tokio::test]
async fn a_request_that_nobody_wants_any_more_costs_no_other_connection() {
    let (server, client) = kept().await;
    let lost = version_fails(&server, Fault::Stall);
    dropped_after(&server, &client, lost, Duration::from_millis(100)).await;
    soon(client.apiserver_version()).await.unwrap();
    assert_eq!(server.connections().accepted, KEPT);
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
    let mut lines = good.lines();
    let authority = lines
        .find_map(|line| line.trim().strip_prefix("certificate-authority-data: "))
        .unwrap();
    for (part, broken) in [
        ("users:", "users: ]"),
        (authority, "bm90IGEgY2VydGlmaWNhdGU="),
        ("server: https://", "server: https://user:"),
        ("current-context: it", "current-context: other"),
        (
            "    token:",
            "    client-certificate-data: AAAA\n    token:",
        ),
        (
            "    server:",
            &format!("    proxy-url: ftp://user:{TOKEN}@127.0.0.1:1\n    server:"),
        ),
    ] {
        let error = KubeconfigFile::new(&good.replace(part, broken))
            .error()
            .await;
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
    let file = KubeconfigFile::new(&before.kubeconfig_at(&server.url(), TOKEN));
    let client = file.connect().await.unwrap();
    client
        .apiserver_version()
        .await
        .expect_err("of another authority");
    // In a file that does not exist for a moment, as when it is replaced, nothing is found.
    std::fs::remove_file(&file.path).unwrap();
    for _ in 0..2 {
        pass(1).await;
        client
            .apiserver_version()
            .await
            .expect_err("of another authority");
    }
    file.write(&server.kubeconfig(TOKEN));
    pass(1).await;
    client
        .apiserver_version()
        .await
        .expect_err("with what was read before");
    client.apiserver_version().await.expect("of this authority");
}

#[tokio::test]
async fn a_token_that_was_rotated_is_read_again_once_it_is_not_accepted() {
    let server = usual_server().await;
    let file = KubeconfigFile::new(&server.kubeconfig("expired"));
    let client = file.connect().await.unwrap();
    file.write(&server.kubeconfig(TOKEN));
    pass(1).await;
    client.apiserver_version().await.expect_err("an old token");
    client.apiserver_version().await.expect("the new one");
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
async fn the_seeds_answers_have_the_same_bounds_as_a_shoots() {
    let (server, _, client) = connected().await;
    let long = "c".repeat(70 << 10);
    let said = [
        "the head of the answer has more than 65536 bytes",
        "the answer is compressed (gzip), which was not asked for",
    ];
    for (header, said) in [
        (("x-cookie", &*long), said[0]),
        (("content-encoding", "gzip"), said[1]),
    ] {
        version_fails(
            &server,
            answer(200, &[header], r#"{"major": "1", "minor": "36"}"#),
        );
        let error = with_causes(&client.apiserver_version().await.unwrap_err());
        assert!(error.ends_with(said), "{error}");
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

/// Leads every CONNECT to `to`, and says how the first one began.
async fn proxy(listener: TcpListener, to: std::net::SocketAddr) -> String {
    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = BufReader::new(stream);
    let (mut head, mut line) = (String::new(), String::new());
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).await.unwrap();
        head.push_str(&line);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let mut server = TcpStream::connect(to).await.unwrap();
    tokio::spawn(async move { copy_bidirectional(&mut stream, &mut server).await });
    head
}

#[tokio::test]
async fn a_proxy_of_the_kubeconfig_leads_to_the_seed() {
    let server = usual_server().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxied = format!(
        "    proxy-url: http://user:word@{}\n    server:",
        listener.local_addr().unwrap()
    );
    // Only the proxy can lead there: the name is one of the certificate's, but nothing here
    // resolves it.
    let kubeconfig = server.kubeconfig_at("https://kubernetes.default.svc:6443", TOKEN);
    let client = client(&kubeconfig.replace("    server:", &proxied)).await;
    let (version, head) = tokio::join!(
        client.apiserver_version(),
        proxy(listener, server.address())
    );
    version.unwrap();
    assert!(
        head.starts_with("CONNECT kubernetes.default.svc:6443 HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.to_lowercase()
            .contains("\r\nproxy-authorization: basic dxnlcjp3b3jk\r\n"),
        "{head}"
    );
}
