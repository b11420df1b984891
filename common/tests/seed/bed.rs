//! A seed in memory, and what leads to it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api_server::{Authority, Fault, FaultId, MemoryApi, Options, PATIENCE, Record, When};
use common::metrics::{RequestCounter, UnreadableObjects};
use common::seed_client::{KubeconfigChoice, connect};
use common::transport::Dialer;
use common::view::{Key, View};
use http::Request;
use http::header::{AUTHORIZATION, HeaderValue};
use kube::api::Api;
use kube::client::Body;
use kube::runtime::watcher;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub const TOKEN: &str = "t0k3n-f0r-th3-s33d";

pub async fn soon<T>(act: impl Future<Output = T>) -> T {
    let done = timeout(PATIENCE, act).await;
    done.expect("it does not take that long")
}

/// A server whose administrator has [`TOKEN`].
pub async fn server(options: Options) -> Arc<MemoryApi> {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let options = Options {
        admin_token: TOKEN.into(),
        ..options
    };
    let authority = Authority::new().unwrap();
    let server = MemoryApi::start(&authority, options);
    Arc::new(server.await.unwrap())
}

/// Sends a request that is given up after this time, in which it has no answer.
pub async fn give_up(client: &Client, time: Duration) {
    let answer = timeout(time, client.apiserver_version()).await;
    answer.expect_err("no answer");
}

/// A server that leaves quiet watches alone.
pub async fn quiet_server() -> Arc<MemoryApi> {
    let bookmark_interval = Duration::from_secs(86_400);
    server(Options {
        bookmark_interval,
        ..Options::default()
    })
    .await
}

/// A client without sockets, and so in step with tokio's paused clock.
pub fn direct(server: &Arc<MemoryApi>) -> Client {
    let server = Arc::clone(server);
    let answer = move |mut request: Request<Body>| {
        let server = Arc::clone(&server);
        let token = HeaderValue::from_str(&format!("Bearer {TOKEN}")).unwrap();
        request.headers_mut().insert(AUTHORIZATION, token);
        async move { server.answer(request).await }
    };
    Client::new(tower::service_fn(answer), "default")
}

/// A kubeconfig in a file.
pub struct KubeconfigFile {
    pub folder: TempDir,
    pub path: PathBuf,
}

impl KubeconfigFile {
    pub fn new(text: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("kubeconfig");
        let file = Self { folder, path };
        file.write(text);
        file
    }

    pub fn write(&self, text: &str) {
        std::fs::write(&self.path, text).unwrap();
    }

    /// A client as the agents make it.
    pub async fn connect(&self) -> anyhow::Result<Client> {
        let counter = RequestCounter::default();
        self.connect_by(Dialer::default(), &counter).await
    }

    /// The same by other means, whose requests are counted.
    pub async fn connect_by(
        &self,
        dialer: Dialer,
        counter: &RequestCounter,
    ) -> anyhow::Result<Client> {
        connect(dialer, KubeconfigChoice::path(Some(&self.path)), counter).await
    }

    /// Why the seed cannot be asked.
    pub async fn error(&self) -> anyhow::Error {
        match self.connect().await {
            Err(error) => error,
            Ok(client) => client.apiserver_version().await.unwrap_err().into(),
        }
    }
}

pub async fn client(kubeconfig: &str) -> Client {
    KubeconfigFile::new(kubeconfig).connect().await.unwrap()
}

/// Lets time pass at once, and what waited for it run.
pub async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Requests for the version meet a fault.
pub fn version_fails(server: &MemoryApi, fault: Fault) -> FaultId {
    server
        .faults()
        .add(When::request("GET", "/version").once(), fault)
}

/// An answer with these headers.
pub fn answer(code: u16, headers: &[(&str, &str)], body: impl Into<String>) -> Fault {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Fault::Answer {
        code,
        headers: headers.collect(),
        body: body.into().into(),
    }
}

/// A running view of all objects of a kind.
pub struct ViewBed {
    pub server: Arc<MemoryApi>,
    pub view: Arc<View<()>>,
    pub changes: mpsc::Receiver<Key>,
    resource: String,
    _task: AbortOnDropHandle<()>,
}

impl ViewBed {
    pub fn of<K>(
        server: Arc<MemoryApi>,
        client: Client,
        view: Arc<View<()>>,
        resource: &str,
    ) -> Self
    where
        K: Resource<DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug
            + Send
            + Sync
            + 'static,
    {
        let (sender, changes) = mpsc::channel(64);
        let (api, keep) = (Api::<K>::all(client), |_: K| Some(()));
        let selected = watcher::Config::default();
        let work =
            Arc::clone(&view).run(api, selected, keep, Some(sender), CancellationToken::new());
        Self {
            server,
            view,
            changes,
            resource: resource.to_owned(),
            _task: AbortOnDropHandle::new(tokio::spawn(work)),
        }
    }

    /// A view of all Secrets.
    pub fn of_secrets(server: Arc<MemoryApi>, client: Client) -> Self {
        let view = View::new("secrets", &UnreadableObjects::default());
        Self::of::<k8s_openapi::api::core::v1::Secret>(server, client, view, "secrets")
    }

    /// The same, filled with one Secret and watched.
    pub async fn filled(server: Arc<MemoryApi>, client: Client) -> Self {
        let mut bed = Self::of_secrets(server, client);
        bed.create("one");
        bed.changed("one").await;
        bed.asked("watch", 1).await;
        bed
    }

    pub fn create(&self, name: &str) {
        self.create_object("v1", "Secret", name);
    }

    pub fn create_object(&self, api_version: &str, kind: &str, name: &str) {
        let metadata = json!({"namespace": "a", "name": name});
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        self.server.store().create(object).unwrap();
    }

    pub fn delete(&self, name: &str) {
        self.server
            .store()
            .delete(&self.resource, "a", name)
            .unwrap();
    }

    /// Requests of this kind with this verb meet a fault.
    pub fn fails(&self, verb: &str, times: u64, fault: Fault) -> FaultId {
        self.server
            .faults()
            .add(When::verb(verb, &self.resource).times(times), fault)
    }

    pub async fn changed(&mut self, name: &str) {
        let change = soon(self.changes.recv()).await;
        assert_eq!(change.expect("the view runs").name, name);
    }

    /// Names of what is known.
    pub fn known(&self) -> Vec<String> {
        self.view
            .all()
            .into_iter()
            .map(|(key, _)| key.name)
            .collect()
    }

    fn is_answered(&self, record: &Record, verb: &str) -> bool {
        record.verb == verb && record.resource == self.resource && record.status == Some(200)
    }

    pub fn count(&self, verb: &str) -> usize {
        self.server
            .requests()
            .count(|record| self.is_answered(record, verb))
    }

    /// Waits until so many requests with this verb have been answered.
    pub async fn asked(&self, verb: &str, count: usize) {
        let asked = self.server.requests().wait_for(|records| {
            let found = records
                .iter()
                .filter(|record| self.is_answered(record, verb));
            (found.count() >= count).then_some(())
        });
        soon(asked).await;
    }
}
