//! The client for the seed's API server.

use std::time::Duration;

use api_server::hello;
use api_server::{Authority, Fault, FaultId, MemoryApi, Options, PATIENCE, When};
use common::logging::with_causes;
use common::metrics::{Registry, RequestCounter};
use common::seed_client::connect;
use futures::future::join_all;
use kube::Client;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::watches::pass;

pub const TOKEN: &str = "t0k3n-f0r-th3-s33d";

/// A server whose administrator has [`TOKEN`].
pub async fn server(options: Options) -> MemoryApi {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let options = Options {
        admin_token: TOKEN.into(),
        ..options
    };
    MemoryApi::start(&Authority::new().unwrap(), options)
        .await
        .unwrap()
}

/// A client as the agents make it.
pub async fn client(kubeconfig: &str) -> Client {
    counted_client(kubeconfig, &RequestCounter::default()).await
}

async fn counted_client(kubeconfig: &str, counter: &RequestCounter) -> Client {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig).unwrap();
    connect(Some(&file), counter).await.unwrap()
}

#[tokio::test]
async fn every_answer_and_every_lack_of_one_is_counted() {
    let server = server(Options::default()).await;
    let mut registry = Registry::default();
    let client = counted_client(
        &server.kubeconfig(TOKEN),
        &RequestCounter::register(&mut registry),
    )
    .await;
    for fault in [Fault::status(409), Fault::CloseBefore] {
        server.faults().add(When::request("GET", "/version"), fault);
        client.apiserver_version().await.unwrap_err();
        server.faults().clear();
    }
    let late = server
        .faults()
        .add(When::request("GET", "/version"), Fault::Stall);
    tokio::select! {
        answer = client.apiserver_version() => panic!("{answer:?}"),
        // Whoever waited for it has given it up.
        () = server.faults().met(late, 1) => {}
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let url = server.url();
    let host = url.trim_start_matches("https://");
    for (code, count) in [("409", 1), ("<error>", 2)] {
        let line = format!(
            "rest_client_requests_total{{code=\"{code}\",method=\"GET\",host=\"{host}\"}} {count}\n"
        );
        assert!(text.contains(&line), "{text}");
    }
}

#[tokio::test]
async fn nothing_older_than_tls_1_2_is_offered_to_a_seed() {
    let server = server(Options::default()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let client = client(&server.kubeconfig_at(&url, TOKEN)).await;
    let (answer, message) = tokio::join!(
        client.apiserver_version(),
        hello::read_client_hello(&listener)
    );
    assert!(answer.is_err());
    assert_eq!(
        hello::versions(&message.unwrap()),
        [0x0303, 0x0304],
        "TLS 1.2 and 1.3"
    );
}

/// A server, and a client with so many kept connections to it.
async fn kept(count: usize) -> (MemoryApi, Client) {
    let server = server(Options::default()).await;
    let client = client(&server.kubeconfig(TOKEN)).await;
    let all = CancellationToken::new();
    server.faults().add(
        When::request("GET", "/version").times(count as u64),
        Fault::Hold(all.clone()),
    );
    let asked = server
        .requests()
        .wait_for(|requests| (requests.len() == count).then(|| all.cancel()));
    let (answers, ()) = tokio::join!(
        join_all((0..count).map(|_| client.apiserver_version())),
        asked
    );
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(
        server.connections().accepted,
        count as u64,
        "each has a connection of its own"
    );
    (server, client)
}

/// Sends a request that is dropped after this time, in which it has no answer.
pub async fn dropped_after(server: &MemoryApi, client: &Client, lost: FaultId, time: Duration) {
    let met = async {
        server.faults().met(lost, 1).await;
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
    };
    tokio::select! {
        answer = client.apiserver_version() => panic!("{answer:?}"),
        () = met => {}
    }
}

#[tokio::test]
async fn after_a_request_that_was_given_up_no_kept_connection_is_used() {
    const KEPT: u64 = 4;
    let (server, client) = kept(KEPT as usize).await;
    // The network forgets them all, and tells nobody.
    let lost = server.faults().add(
        When::matches(|record| record.connection <= KEPT),
        Fault::Stall,
    );
    dropped_after(&server, &client, lost, Duration::from_secs(1)).await;
    for _ in 0..KEPT {
        timeout(PATIENCE, client.apiserver_version())
            .await
            .expect("on a fresh connection")
            .unwrap();
    }
    assert_eq!(
        (server.faults().hits(lost), server.connections().accepted),
        (1, KEPT + 1),
        "one, which is kept in turn"
    );
}

#[tokio::test]
async fn a_request_that_nobody_wants_any_more_costs_no_other_connection() {
    const KEPT: u64 = 4;
    let (server, client) = kept(KEPT as usize).await;
    let lost = server
        .faults()
        .add(When::request("GET", "/version").once(), Fault::Stall);
    dropped_after(&server, &client, lost, Duration::from_millis(100)).await;
    timeout(PATIENCE, client.apiserver_version())
        .await
        .expect("on a kept connection")
        .unwrap();
    assert_eq!(server.connections().accepted, KEPT);
}

/// What Linux does about the TCP connection to this server: the kind of its timer, and when that
/// goes off, in seconds.
fn timer(server: &MemoryApi) -> (String, f64) {
    let remote = format!("0100007F:{:04X}", server.address().port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let mut rows = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    // 01: established.
    let row = rows
        .find(|row| row[2] == remote && row[3] == "01")
        .expect("a connection");
    let (kind, ticks) = row[5].split_once(':').unwrap();
    (
        kind.to_owned(),
        i64::from_str_radix(ticks, 16).unwrap() as f64 / 100.0,
    )
}

#[tokio::test]
async fn the_kernel_asks_the_other_end_of_a_quiet_connection_for_a_sign_of_life() {
    const KEEPALIVE: &str = "02";
    let server = server(Options::default()).await;
    let client = client(&server.kubeconfig(TOKEN)).await;
    client.apiserver_version().await.unwrap();
    // Until all is acknowledged it is another timer.
    let (kind, seconds) = timeout(PATIENCE, async {
        loop {
            match timer(&server) {
                (kind, _) if kind == "01" => tokio::time::sleep(Duration::from_millis(10)).await,
                timer => break timer,
            }
        }
    })
    .await
    .expect("an idle connection");
    assert_eq!(kind, KEEPALIVE);
    assert!(seconds <= 10.0, "{seconds} s");
}

#[tokio::test]
async fn a_seed_that_redirects_is_not_followed_with_credentials() {
    let server = server(Options::default()).await;
    let elsewhere = self::server(Options::default()).await;
    let headers = vec![(
        "location".to_owned(),
        format!("{}/version", elsewhere.url()),
    )];
    for code in [301, 302, 303, 307, 308] {
        let answer = Fault::Answer {
            code,
            headers: headers.clone(),
            body: "".into(),
        };
        server
            .faults()
            .add(When::request("GET", "/version").once(), answer);
        let error = client(&server.kubeconfig(TOKEN))
            .await
            .apiserver_version()
            .await
            .unwrap_err();
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
    let server = server(Options::default()).await;
    let good = server.kubeconfig(TOKEN);
    let authority = good
        .lines()
        .find_map(|line| line.trim().strip_prefix("certificate-authority-data: "))
        .unwrap();
    let broken = [
        good.replace("users:", "users: ]"),
        good.replace("token: ", "tokens:\n      - "),
        good.replace(authority, "bm90IGEgY2VydGlmaWNhdGU="),
        good.replace("server: https://", "server: https://user:"),
        good.replace("current-context: it", "current-context: other"),
        good.replace(
            "    token:",
            "    client-certificate-data: AAAA\n    token:",
        ),
    ];
    for text in broken {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("kubeconfig");
        std::fs::write(&file, &text).unwrap();
        let error = match connect(Some(&file), &RequestCounter::default()).await {
            Err(error) => error,
            Ok(client) => match client.apiserver_version().await {
                Err(error) => error.into(),
                Ok(_) => continue,
            },
        };
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

/// Each way to give this token to a user, with the name that an error has for it.
fn users_of(token: &str, folder: &TempDir) -> Vec<(&'static str, String)> {
    let file = folder.path().join("token");
    std::fs::write(&file, token).unwrap();
    let oidc = json!({ "name": "oidc", "config": { "id-token": token } });
    vec![
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
    let server = server(Options::default()).await;
    let kubeconfig = server.kubeconfig(TOKEN);
    let folder = TempDir::new().unwrap();
    for (_, user) in users_of(&format!("{TOKEN}\n"), &folder) {
        let kubeconfig = kubeconfig.replace(&format!("token: {TOKEN}"), &user);
        let version = client(&kubeconfig).await.apiserver_version().await;
        assert!(version.is_ok(), "{user}: {version:?}");
    }
}

/// A request is not answered, so that what leads to the seed is read again; the one after it is.
async fn goes_on_with_what_was_known(server: &MemoryApi, client: &Client) {
    pass(Duration::from_secs(1)).await;
    server
        .faults()
        .add(When::request("GET", "/version").once(), Fault::CloseBefore);
    client.apiserver_version().await.expect_err("no answer");
    client
        .apiserver_version()
        .await
        .expect("on another connection, with what was known");
}

#[tokio::test]
async fn a_token_that_no_header_can_carry_is_refused_by_name_and_what_was_known_stays() {
    let server = server(Options::default()).await;
    let kubeconfig = server.kubeconfig(TOKEN);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, &kubeconfig).unwrap();
    let client = connect(Some(&file), &RequestCounter::default())
        .await
        .unwrap();
    for (name, user) in users_of("s3cr3t\u{1}", &folder) {
        let bad = kubeconfig.replace(&format!("token: {TOKEN}"), &user);
        std::fs::write(&file, bad).unwrap();
        let refused = connect(Some(&file), &RequestCounter::default()).await;
        let error = refused.err().expect(name);
        let said = format!("{error:#} {error:?}");
        assert!(said.contains(name) && !said.contains("s3cr3t"), "{said}");
        goes_on_with_what_was_known(&server, &client).await;
    }
}

#[tokio::test]
async fn a_token_file_is_read_again_each_minute() {
    let server = server(Options::default()).await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let user = format!("tokenFile: {}", file.display());
    let kubeconfig = server
        .kubeconfig(TOKEN)
        .replace(&format!("token: {TOKEN}"), &user);
    let client = client(&kubeconfig).await;
    for (content, accepted) in [("", true), ("expired\n", false), (TOKEN, true)] {
        std::fs::write(&file, content).unwrap();
        pass(Duration::from_secs(60)).await;
        let version = client.apiserver_version().await;
        assert_eq!(version.is_ok(), accepted, "{content}: {version:?}");
    }
}

#[tokio::test]
async fn an_exec_plugin_that_fails_says_why_and_shows_no_secret() {
    let server = server(Options::default()).await;
    let folder = TempDir::new().unwrap();
    let (file, ran) = (folder.path().join("kubeconfig"), folder.path().join("ran"));
    let fails = "echo hidden-answer; echo no login >&2; exit 3";
    let works_once = format!(
        "if mkdir {} 2>/dev/null; then {}else {fails}; fi",
        ran.display(),
        printing(TOKEN, Some("2020-01-01T00:00:00Z"))
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
        let kubeconfig = server.kubeconfig(TOKEN);
        let user = plugin_of(script);
        std::fs::write(&file, kubeconfig.replace(&format!("token: {TOKEN}"), &user)).unwrap();
        let error = match connect(Some(&file), &RequestCounter::default()).await {
            Err(error) => error,
            Ok(client) => client.apiserver_version().await.unwrap_err().into(),
        };
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
    let (server, before) = (
        server(Options::default()).await,
        self::server(Options::default()).await,
    );
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, before.kubeconfig_at(&server.url(), TOKEN)).unwrap();
    let client = connect(Some(&file), &RequestCounter::default())
        .await
        .unwrap();
    client
        .apiserver_version()
        .await
        .expect_err("of another authority");
    // In a file that does not exist for a moment, as when it is replaced, nothing is found.
    std::fs::remove_file(&file).unwrap();
    for _ in 0..2 {
        pass(Duration::from_secs(1)).await;
        client
            .apiserver_version()
            .await
            .expect_err("of another authority");
    }
    std::fs::write(&file, server.kubeconfig(TOKEN)).unwrap();
    pass(Duration::from_secs(1)).await;
    client
        .apiserver_version()
        .await
        .expect_err("on the last connection with what was read before");
    client.apiserver_version().await.expect("of this authority");
}

#[tokio::test]
async fn a_token_that_was_rotated_is_read_again_once_it_is_not_accepted() {
    let server = server(Options::default()).await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, server.kubeconfig("expired")).unwrap();
    let client = connect(Some(&file), &RequestCounter::default())
        .await
        .unwrap();
    std::fs::write(&file, server.kubeconfig(TOKEN)).unwrap();
    pass(Duration::from_secs(1)).await;
    client.apiserver_version().await.expect_err("an old token");
    client.apiserver_version().await.expect("the new one");
}

#[tokio::test]
async fn what_a_seed_asks_for_in_a_header_is_in_the_error() {
    let server = server(Options::default()).await;
    let client = client(&server.kubeconfig(TOKEN)).await;
    let status =
        json!({"kind": "Status", "status": "Failure", "message": "storage is (re)initializing", "code": 429}).to_string();
    for (body, message) in [
        ("busy".to_owned(), "busy"),
        (status, "storage is (re)initializing"),
    ] {
        let answer = Fault::Answer {
            code: 429,
            headers: vec![("retry-after".into(), "3".into())],
            body: body.into(),
        };
        server
            .faults()
            .add(When::request("GET", "/version").once(), answer);
        let error = client.apiserver_version().await.unwrap_err();
        let kube::Error::Api(status) = error else {
            panic!("{error:?}")
        };
        assert_eq!((status.code, status.message.as_str()), (429, message));
        assert_eq!(
            status.details.map(|details| details.retry_after_seconds),
            Some(3)
        );
    }
}

#[tokio::test]
async fn a_server_without_scheme_or_host_is_refused_and_what_was_known_stays() {
    let server = server(Options::default()).await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    let good = server.kubeconfig(TOKEN);
    std::fs::write(&file, &good).unwrap();
    let client = connect(Some(&file), &RequestCounter::default())
        .await
        .unwrap();
    let url = server.url();
    let address = url.strip_prefix("https://").unwrap();
    for bad in [address, "localhost", "/path", "ftp://localhost"] {
        std::fs::write(&file, good.replace(&url, bad)).unwrap();
        let refused = connect(Some(&file), &RequestCounter::default()).await;
        let error = with_causes(refused.err().expect(bad).as_ref());
        assert!(error.contains("cluster.server"), "{error}");
        goes_on_with_what_was_known(&server, &client).await;
    }
}

#[tokio::test]
async fn an_error_of_connecting_names_the_address() {
    let server = server(Options::default()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("https://user:{TOKEN}@{address}");
    let client = client(&server.kubeconfig_at(&url, TOKEN)).await;
    let error = with_causes(&client.apiserver_version().await.unwrap_err());
    let named = format!("client error (Connect): no connection to {address}: tcp connect error: ");
    assert!(error.contains(&named) && !error.contains(TOKEN), "{error}");
}

#[tokio::test]
async fn the_seeds_answers_have_the_same_bounds_as_a_shoots() {
    let server = server(Options::default()).await;
    let client = client(&server.kubeconfig(TOKEN)).await;
    let cookies = |count, length| -> Vec<_> {
        let cookie = |number| (format!("x-cookie-{number}"), "c".repeat(length));
        (0..count).map(cookie).collect()
    };
    let gzip = ("content-encoding".to_owned(), "gzip".to_owned());
    for (headers, said) in [
        (cookies(1, 12 << 10), None),
        (cookies(500, 64), None),
        (
            cookies(1, 70 << 10),
            Some("the head of the answer has more than 65536 bytes"),
        ),
        (
            cookies(1_001, 8),
            Some("the head of the answer has more than 1000 lines"),
        ),
        (
            vec![gzip],
            Some("the answer is compressed (gzip), which was not asked for"),
        ),
    ] {
        let answer = Fault::Answer {
            code: 200,
            headers,
            body: json!({"major": "1", "minor": "36"}).to_string().into(),
        };
        let asked = When::request("GET", "/version").once();
        server.faults().add(asked, answer);
        let error = client.apiserver_version().await.err();
        let error = error.map(|error| with_causes(&error));
        assert_eq!(error.is_some(), said.is_some(), "{said:?} {error:?}");
        let error = error.unwrap_or_default();
        assert!(error.ends_with(said.unwrap_or_default()), "{error}");
    }
}

#[tokio::test]
async fn a_seed_that_floods_with_1xx_responses_is_given_up() {
    let server = server(Options::default()).await;
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
    let answer = timeout(PATIENCE, client.apiserver_version()).await;
    let error = answer.expect("it is given up").unwrap_err();
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
    let server = server(Options::default()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // Only the proxy can lead there: the name is one of the certificate's, but nothing here
    // resolves it.
    let kubeconfig = server.kubeconfig_at("https://kubernetes.default.svc:6443", TOKEN);
    let kubeconfig = kubeconfig.replace(
        "    server:",
        &format!("    proxy-url: http://user:word@{address}\n    server:"),
    );
    let client = client(&kubeconfig).await;
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

#[tokio::test]
async fn a_proxy_that_is_none_is_an_error_that_does_not_show_its_password() {
    let server = server(Options::default()).await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    let proxy = format!("    proxy-url: ftp://user:{TOKEN}@127.0.0.1:1\n    server:");
    std::fs::write(
        &file,
        server.kubeconfig("other").replace("    server:", &proxy),
    )
    .unwrap();
    let connected = connect(Some(&file), &RequestCounter::default()).await;
    let error = connected.err().expect("an error");
    let said = format!("{error:#} {error:?}");
    assert!(
        said.contains("proxy-url") && !said.contains(TOKEN),
        "{said}"
    );
}
