use std::future::ready;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api_server::{Authority, Fault, FaultId, MemoryApi, Options, When};
use futures::future::join_all;
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::WatchParams;
use kube::config::ExecConfig;
use prometheus_client::encoding::text::encode;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::time::{Instant, advance, timeout};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::logging::with_causes;
use crate::metrics::Registry;
use crate::status_message::retry_after;

const TOKEN: &str = "t0k3n-f0r-th3-s33d";

/// A kubeconfig whose only context leads to a server of its name.
fn kubeconfig(name: &str) -> String {
    format!(
        "{{current-context: {name}, contexts: [{{name: {name}, context: {{cluster: {name}}}}}], \
         clusters: [{{name: {name}, cluster: {{server: 'https://{name}'}}}}]}}"
    )
}

/// Prints what is found in the environment of its process.
#[test]
#[ignore = "the next one runs it, each time in another environment"]
fn what_is_found() {
    let choice = KubeconfigChoice {
        path: std::env::var_os("FLAG").map(PathBuf::from),
        context: std::env::var("CONTEXT").ok(),
    };
    let found = choice.find().map(|seed| seed.config.cluster_url);
    println!(
        "{}",
        found.map_or_else(|error| format!("{error:#}"), |url| url.to_string())
    );
}

#[test]
fn the_seed_is_found_by_flag_variable_and_home() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(at("home/.kube")).unwrap();
    for (path, text) in [
        ("one", kubeconfig("one")),
        ("two", kubeconfig("two")),
        ("home/.kube/config", kubeconfig("home")),
        ("broken", "a: [".to_owned()),
    ] {
        std::fs::write(at(path), text).unwrap();
    }
    for (environment, found) in [
        ("FLAG=one KUBECONFIG=two HOME=home", "https://one/"),
        ("KUBECONFIG=two:one HOME=home", "https://two/"),
        ("KUBECONFIG= HOME=home", "https://home/"),
        (
            "HOME=nowhere",
            "no --kubeconfig, no KUBECONFIG, not in a cluster: ",
        ),
        (
            "FLAG=broken",
            "kubeconfig broken: it is not a kubeconfig in YAML (line 1)",
        ),
        ("CONTEXT=two KUBECONFIG=one:two", "https://two/"),
        (
            "CONTEXT=gone FLAG=one",
            "there is no context \"gone\" in kubeconfig one",
        ),
    ] {
        let variables = environment
            .split(' ')
            .filter_map(|pair| pair.split_once('='));
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "seed_client::tests::what_is_found",
                "--ignored",
                "--nocapture",
            ])
            .current_dir(folder.path())
            .env_clear()
            .envs(variables)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(found), "{environment}: {said}");
    }
}

/// A seed in memory whose watches stay quiet, and a client of its kubeconfig.
struct Seed {
    server: Arc<MemoryApi>,
    folder: TempDir,
    client: Client,
}

async fn server(authority: &Authority) -> Arc<MemoryApi> {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let options = Options {
        admin_token: TOKEN.into(),
        bookmark_interval: Duration::from_secs(86_400),
        ..Options::default()
    };
    Arc::new(MemoryApi::start(authority, options).await.unwrap())
}

fn to(server: &Arc<MemoryApi>) -> Dialer {
    let server = Arc::clone(server);
    Dialer::new(move |_| ready(server.dial()))
}

impl Seed {
    async fn start() -> Self {
        let server = server(&Authority::new().unwrap()).await;
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, server.kubeconfig(TOKEN)).unwrap();
        let choice = KubeconfigChoice::path(Some(&path));
        let client = connect(to(&server), choice, &RequestCounter::default()).await;
        Self {
            client: client.unwrap(),
            server,
            folder,
        }
    }

    /// So many requests meet a fault.
    fn fails(&self, times: u64, fault: Fault) -> FaultId {
        self.server.faults().add(When::any().times(times), fault)
    }

    async fn ask(&self) -> kube::Result<()> {
        self.client.apiserver_version().await.map(drop)
    }

    /// Sends a request that gets no answer and is given up after this time.
    async fn gives_up(&self, millis: u64) {
        let lost = self.fails(1, Fault::Stall);
        let answer = timeout(Duration::from_millis(millis), self.ask()).await;
        answer.expect_err("no answer");
        self.server.faults().remove(lost);
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_request_that_was_given_up_no_kept_connection_is_used() {
    const KEPT: u64 = 3;
    // A request that nobody wants any more, and one that has had its time.
    for (waited, new) in [(100, 0), (1000, 1)] {
        let seed = Seed::start().await;
        let all = CancellationToken::new();
        let held = seed.fails(KEPT, Fault::Hold(all.clone()));
        let release = seed.server.faults().met(held, KEPT).map(|()| all.cancel());
        let (answers, ()) = tokio::join!(join_all((0..KEPT).map(|_| seed.ask())), release);
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(seed.server.connections().accepted, KEPT, "one for each");
        seed.gives_up(waited).await;
        if new > 0 {
            // The network has forgotten them all, and tells nobody.
            let forgotten = When::matches(|record| record.connection <= KEPT);
            seed.server.faults().add(forgotten, Fault::Stall);
        }
        for _ in 0..KEPT {
            seed.ask().await.unwrap();
        }
        // The one that was given up has ended its own, and the new one is kept in turn.
        assert_eq!(seed.server.connections().accepted, KEPT + new);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_does_not_begin_or_stays_silent_is_given_up() {
    for (fault, seconds) in [(Some(Fault::Stall), 30), (None, 240)] {
        let (seed, begin) = (Seed::start().await, Instant::now());
        if let Some(fault) = fault {
            seed.fails(1, fault);
        }
        let version = seed.server.store().revision().to_string();
        let secrets: Api<Secret> = Api::all(seed.client.clone());
        if let Ok(watch) = secrets.watch(&WatchParams::default(), &version).await {
            let end = watch.boxed().next().await;
            assert!(matches!(end, Some(Err(_))), "{end:?}");
        }
        assert_eq!(begin.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_rotated_is_read_again_once_the_seed_cannot_be_reached() {
    let [authority, before] = [(); 2].map(|()| Authority::new().unwrap());
    let server = server(&authority).await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("kubeconfig");
    for outdated in [
        api_server::kubeconfig(&server.url(), &before.pem(), TOKEN),
        server.kubeconfig("expired"),
    ] {
        std::fs::write(&path, outdated).unwrap();
        let choice = KubeconfigChoice::path(Some(&path));
        let counter = RequestCounter::default();
        let client = connect(to(&server), choice, &counter).await.unwrap();
        // A file that is replaced does not exist for a moment.
        std::fs::remove_file(&path).unwrap();
        for _ in 0..=6 {
            advance(Duration::from_secs(10)).await;
            client.apiserver_version().await.unwrap_err();
        }
        // By this `/readyz` goes.
        assert_eq!(counter.failing_for().as_secs(), 60);
        std::fs::write(&path, server.kubeconfig(TOKEN)).unwrap();
        client.apiserver_version().await.expect("by a new client");
        assert_eq!(counter.failing_for(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_cannot_be_used_is_refused_and_what_was_known_stays() {
    let seed = Seed::start().await;
    let (path, url) = (seed.folder.path().join("kubeconfig"), seed.server.url());
    for (part, bad, name) in [
        (&*url, "localhost", "cluster.server"),
        (&url, "/path", "cluster.server"),
        (TOKEN, "\"s3cr3t\\u0001\"", "user.token"),
    ] {
        let bad = seed.server.kubeconfig(TOKEN).replace(part, bad);
        std::fs::write(&path, bad).unwrap();
        let choice = KubeconfigChoice::path(Some(&path));
        let error = connect(to(&seed.server), choice, &RequestCounter::default()).await;
        let error = error.err().expect(name);
        let said = format!("{error:#} {error:?}");
        assert!(said.contains(name) && !said.contains("s3cr3t"), "{said}");
        // A request is not answered, so that what leads to the seed is read again.
        advance(Duration::from_secs(1)).await;
        seed.fails(1, Fault::CloseBefore);
        seed.ask().await.expect_err("no answer");
        seed.ask().await.expect("on another connection");
    }
}

#[tokio::test]
async fn whatever_is_no_answer_is_told_and_counted_and_no_redirect_is_followed() {
    let mut registry = Registry::default();
    let counter = RequestCounter::register(&mut registry);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("kubeconfig");
    let url = format!("http://user:{TOKEN}@seed.example:6443");
    std::fs::write(&path, api_server::kubeconfig(&url, "", TOKEN)).unwrap();
    let (begins, ends) = ("HTTP/1.1", "content-length: 0\r\n\r\n");
    for (answer, said) in [
        (
            String::new(),
            "no answer from seed.example:6443: client error (SendRequest): ",
        ),
        (
            format!("{begins} 302 It\r\nlocation: http://elsewhere.example/\r\n{ends}"),
            "",
        ),
        (
            format!("{begins} 429 It\r\nretry-after: 3\r\n\r\nbusy"),
            "busy, again in Some(3s)",
        ),
    ] {
        let count = Arc::new(AtomicU64::new(0));
        let dialed = Arc::clone(&count);
        let dialer = Dialer::new(move |_| {
            dialed.fetch_add(1, Ordering::Relaxed);
            let (ours, mut theirs) = duplex(1 << 16);
            let answer = answer.clone();
            tokio::spawn(async move {
                theirs.read_u8().await.ok();
                theirs.write_all(answer.as_bytes()).await.ok();
            });
            ready(Ok(ours))
        });
        let choice = KubeconfigChoice::path(Some(&path));
        let client = connect(dialer, choice, &counter).await.unwrap();
        let error = client.apiserver_version().await.unwrap_err();
        let text = match &error {
            kube::Error::Api(status) => {
                format!("{}, again in {:?}", status.message, retry_after(status))
            }
            error => with_causes(error),
        };
        assert!(text.contains(said), "{text}");
        assert!(
            !format!("{error} {error:?} {text}").contains(TOKEN),
            "{text}"
        );
        assert_eq!(count.load(Ordering::Relaxed), 1, "{text}");
    }
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    for code in ["<error>", "302", "429"] {
        let line = format!(
            "rest_client_requests_total{{code=\"{code}\",method=\"GET\",host=\"seed.example:6443\"}} 1\n"
        );
        assert!(text.contains(&line), "{text}");
    }
}

/// What comes of a user in a kubeconfig, or what is wrong with it, causes included.
async fn used(user: &str) -> Result<(), String> {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("kubeconfig");
    let text = format!(
        "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], \
         clusters: [{{name: c, cluster: {{server: 'https://c', insecure-skip-tls-verify: true}}}}], \
         users: [{{name: u, user: {{{user}}}}}]}}"
    );
    std::fs::write(&path, text).unwrap();
    // Nobody is there whom a request could go to.
    let nowhere = Dialer::new(|_| ready(Err::<tokio::io::Empty, _>(ErrorKind::NotFound.into())));
    let choice = KubeconfigChoice::path(Some(&path));
    let client = connect(nowhere, choice, &RequestCounter::default()).await;
    let told = |error: &dyn std::fmt::Debug, said: String| format!("{said} {error:?}");
    let client = client.map_err(|error| told(&error, format!("{error:#}")))?;
    let error = client.apiserver_version().await.unwrap_err();
    let said = with_causes(&error);
    match said.contains("entity not found") {
        true => Ok(()),
        false => Err(told(&error, said)),
    }
}

/// A user whose credentials are what a shell script prints, with a secret in its arguments and its
/// environment.
fn plugin(script: &str) -> String {
    format!(
        r#"exec: {{
            "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": ["-c", {}, "hidden-argument"],
            "env": [{{ "name": "TOKEN", "value": "hidden-word" }}], "interactiveMode": "Never",
        }}"#,
        json!(script)
    )
}

/// A shell script that prints an ExecCredential.
fn printing(status: serde_json::Value) -> String {
    format!("cat <<'END'\n{}\nEND\n", json!({ "status": status }))
}

#[tokio::test]
async fn credentials_that_cannot_be_used_are_named_and_nothing_of_them_is_shown() {
    let folder = TempDir::new().unwrap();
    let [file, ran] = ["token", "ran"].map(|name| folder.path().join(name));
    std::fs::write(&file, "hidden\n").unwrap();
    let fails = "echo hidden-answer; echo hidden-words >&2; exit 3";
    let failed = "the kubeconfig's exec plugin failed (exit status: 3)";
    let once =
        printing(json!({ "token": "hidden", "expirationTimestamp": "2020-01-01T00:00:00Z" }));
    let once = format!(
        "if mkdir {} 2>/dev/null; then {once}else {fails}; fi",
        ran.display()
    );
    let certificate = json!({ "clientCertificateData": "hidden", "clientKeyData": "hidden" });
    let no_header = "a token that no HTTP header can carry";
    let no_credentials = "the kubeconfig's exec plugin or auth-provider gives no credentials";
    for (user, expected) in [
        (
            "token: \"hidden\\u0001\"".to_owned(),
            "user.token contains characters",
        ),
        // kube takes both as they are.
        (
            format!("tokenFile: {}", file.display()),
            "invalid bearer token: ",
        ),
        (plugin(&printing(json!({ "token": "hidden\n" }))), no_header),
        (plugin(fails), failed),
        (plugin("echo hidden-answer: ["), no_credentials),
        (
            plugin(&printing(certificate)),
            "identity PEM is missing a private key",
        ),
        (plugin(&once), failed),
    ] {
        let said = used(&user).await.unwrap_err();
        let is_named = said.contains(expected) && !said.contains("hidden");
        assert!(is_named, "{said}");
    }
    assert!(ran.exists(), "also the one that worked at first");
    let lasting = json!({ "token": "hidden", "expirationTimestamp": "2099-01-01T00:00:00Z" });
    for user in ["token: \"t0k3n\\n\"".to_owned(), plugin(&printing(lasting))] {
        assert_eq!(used(&user).await, Ok(()));
    }
}

#[test]
fn an_exec_plugin_is_told_that_nobody_is_there() {
    use ExecInteractiveMode::{Always, IfAvailable, Never};
    for (mode, is_terminal, expected) in [
        (Some(Always), false, Err(())),
        (Some(IfAvailable), false, Ok(Some(Never))),
        (None, false, Ok(Some(Never))),
        (Some(Always), true, Ok(Some(Always))),
        (Some(IfAvailable), true, Ok(Some(IfAvailable))),
    ] {
        let mut config = Config::new("https://seed.example".parse().unwrap());
        config.auth_info.exec = Some(ExecConfig {
            interactive_mode: mode,
            ..ExecConfig::default()
        });
        let told = tell_plugin(&mut config, is_terminal);
        if let Err(error) = &told {
            assert!(!error.to_string().contains('\n'), "{error}");
        }
        let mode = config.auth_info.exec.unwrap().interactive_mode;
        assert_eq!(told.map(|()| mode).map_err(|_| ()), expected);
    }
}
