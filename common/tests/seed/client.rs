//! The client for the seed's API server.

use common::metrics::RequestCounter;
use common::seed_client::connect;
use kube::Client;
use memory_api::{Authority, Fault, MemoryApi, Options, When, hello};
use tempfile::TempDir;
use tokio::net::TcpListener;

pub const TOKEN: &str = "t0k3n-f0r-th3-s33d";

/// A server whose administrator has [`TOKEN`].
pub async fn server(options: Options) -> MemoryApi {
    rustls::crypto::ring::default_provider().install_default().ok();
    let options = Options { admin_token: TOKEN.into(), ..options };
    MemoryApi::start(&Authority::new().unwrap(), options).await.unwrap()
}

/// A client as the agents make it.
pub async fn client(kubeconfig: &str) -> Client {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig).unwrap();
    connect(Some(&file), &RequestCounter::default()).await.unwrap()
}

#[tokio::test]
async fn nothing_older_than_tls_1_2_is_offered_to_a_seed() {
    let server = server(Options::default()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let client = client(&server.kubeconfig_at(&url, TOKEN)).await;
    let (answer, message) = tokio::join!(client.apiserver_version(), hello::hear(&listener));
    assert!(answer.is_err());
    assert_eq!(hello::versions(&message.unwrap()), [0x0303, 0x0304], "TLS 1.2 and 1.3");
}

#[tokio::test]
async fn a_seed_that_redirects_is_not_followed_with_credentials() {
    let server = server(Options::default()).await;
    let elsewhere = self::server(Options::default()).await;
    let headers = vec![("location".to_owned(), format!("{}/version", elsewhere.url()))];
    for code in [301, 302, 303, 307, 308] {
        let answer = Fault::Answer { code, headers: headers.clone(), body: "".into() };
        server.faults().add(When::request("GET", "/version").once(), answer);
        let error = client(&server.kubeconfig(TOKEN)).await.apiserver_version().await.unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(!said.contains(TOKEN), "{said}");
    }
    assert_eq!((elsewhere.requests().total(), elsewhere.connections().accepted), (0, 0));
}

#[tokio::test]
async fn no_error_of_a_kubeconfig_quotes_it() {
    let server = server(Options::default()).await;
    let good = server.kubeconfig(TOKEN);
    let authority = good.lines().find_map(|line| line.trim().strip_prefix("certificate-authority-data: ")).unwrap();
    let broken = [
        good.replace("users:", "users: ]"),
        good.replace("token: ", "tokens:\n      - "),
        good.replace(authority, "bm90IGEgY2VydGlmaWNhdGU="),
        good.replace("server: https://", "server: https://user:"),
        good.replace("current-context: it", "current-context: other"),
        good.replace("    token:", "    client-certificate-data: AAAA\n    token:"),
    ];
    for text in broken {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("kubeconfig");
        std::fs::write(&file, &text).unwrap();
        let error = match connect(Some(&file), &RequestCounter::default()).await {
            Err(error) => anyhow::Error::from(error),
            Ok(client) => match client.apiserver_version().await {
                Err(error) => error.into(),
                Ok(_) => continue,
            },
        };
        let said = format!("{error:#} {error:?}");
        assert!(!said.contains(TOKEN), "{said}");
    }
}
