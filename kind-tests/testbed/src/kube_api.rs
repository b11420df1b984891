//! A Kubernetes API as its paths and JSON values: the testbed speaks to many kinds and needs a
//! type for none.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{Status, WatchEvent};
use kube::{Client, Config};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::objects::{collection, metadata, name};
use crate::secrets;

const JSON: &str = "application/json";

/// How long an answer may take. An API server gives up after 60 s; on loopback it has answered long
/// before this.
const ANSWER: Duration = Duration::from_secs(30);
/// How long after a watch broke it is restarted.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

/// A client for one API server with one user's credentials.
#[derive(Clone)]
pub struct KubeApi {
    client: Client,
    /// Whom it acts as, if not as itself.
    user: Option<String>,
}

/// A change that a watch reports.
#[derive(Clone, Debug)]
pub enum ObjectChange {
    /// The object is there, in this state.
    Set(Value),
    /// The object is gone; this was its last state.
    Gone(Value),
}

/// A kubeconfig with a bearer token, which nothing may print from now on.
pub fn kubeconfig(server: &str, authority: &str, token: &str) -> String {
    secrets::all().register(token);
    api_server::kubeconfig(server, authority, token)
}

/// What a request is answered; an error when it takes too long.
async fn answered<T>(answer: impl Future<Output = kube::Result<T>>) -> Result<T> {
    let answer = timeout(ANSWER, answer).await;
    Ok(answer.with_context(|| format!("no answer within {ANSWER:?}"))??)
}

/// None where the API server refuses in this way.
fn unless<T>(answer: Result<T>, refused: impl Fn(&Status) -> bool) -> Result<Option<T>> {
    match answer {
        Err(error) if matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if refused(status)) => {
            Ok(None)
        }
        answer => answer.map(Some),
    }
}

impl KubeApi {
    /// A client for this kubeconfig's current context.
    pub async fn connect(kubeconfig: &str) -> Result<Self> {
        Self::with(kubeconfig, true).await
    }

    /// The same, which shows also a 429, 503 or 504 instead of asking again.
    pub async fn without_retries(kubeconfig: &str) -> Result<Self> {
        Self::with(kubeconfig, false).await
    }

    async fn with(kubeconfig: &str, default_retry: bool) -> Result<Self> {
        let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.connect_timeout = Some(Duration::from_secs(5));
        // Watches of the testbed end when the test does; requests have a deadline of their own.
        config.read_timeout = None;
        config.default_retry = default_retry;
        Ok(Self {
            client: Client::try_from(config)?,
            user: None,
        })
    }

    /// A client for a server that knows no users, and speaks no TLS.
    pub fn without_tls(url: &str) -> Result<Self> {
        Ok(Self {
            client: Client::try_from(Config::new(url.parse()?))?,
            user: None,
        })
    }

    /// A client that impersonates another user, which needs the right to.
    pub fn acting_as(&self, user: &str) -> Self {
        Self {
            client: self.client.clone(),
            user: Some(user.into()),
        }
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<T> {
        let context = format!("{method} {path}");
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, content_type);
        if let Some(user) = &self.user {
            request = request.header("Impersonate-User", user);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        answered(self.client.request(request.body(body.into_bytes())?))
            .await
            .context(context)
    }

    /// The whole answer to a request of any form, also to one that is refused.
    pub async fn answer(&self, request: Request<Vec<u8>>) -> Result<Response<Bytes>> {
        let mut request = request.map(Body::from);
        if let Some(user) = &self.user {
            request
                .headers_mut()
                .insert("Impersonate-User", user.try_into()?);
        }
        answered(async {
            let (head, body) = self.client.send(request).await?.into_parts();
            Ok(Response::from_parts(head, body.collect_bytes().await?))
        })
        .await
    }

    /// The body of an answer that is no JSON.
    pub async fn text(&self, path: &str) -> Result<String> {
        answered(
            self.client
                .request_text(Request::get(path).body(Vec::new())?),
        )
        .await
    }

    /// An object or a list.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.send(Method::GET, path, JSON, None).await
    }

    /// An object, or none when it does not exist.
    pub async fn find(&self, path: &str) -> Result<Option<Value>> {
        unless(self.get(path).await, Status::is_not_found)
    }

    /// The objects in a collection.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>> {
        let mut list = self.get(path).await?;
        Ok(serde_json::from_value(list["items"].take())?)
    }

    /// The names of the objects in a collection.
    pub async fn names(&self, path: &str) -> Result<Vec<String>> {
        let objects = self.list(path).await?;
        Ok(objects
            .iter()
            .map(|object| name(object).to_owned())
            .collect())
    }

    /// Creates an object; one that is there already stays as it is.
    pub async fn create(&self, object: &Value) -> Result<()> {
        let path = collection(object)?;
        let created = self.send(Method::POST, &path, JSON, Some(object)).await;
        unless(created, Status::is_already_exists)
            .map(|_: Option<IgnoredAny>| ())
            .with_context(|| name(object).to_owned())
    }

    /// Creates objects, in order; those that are there already stay as they are.
    pub async fn create_all(&self, objects: &[Value]) -> Result<()> {
        for object in objects {
            self.create(object).await?;
        }
        Ok(())
    }

    /// Posts to a subresource or a review and returns the answer.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(Method::POST, path, JSON, Some(body)).await
    }

    /// Merges a patch into an object.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<()> {
        self.patch("merge-patch", path, patch).await
    }

    /// Merges a patch into an object of a built-in kind, in whose lists items are merged by their
    /// keys (a condition by its type).
    pub async fn merge_items(&self, path: &str, patch: &Value) -> Result<()> {
        self.patch("strategic-merge-patch", path, patch).await
    }

    /// Sets or removes an annotation of an object.
    pub async fn annotate(&self, path: &str, key: &str, value: Option<&str>) -> Result<()> {
        self.merge(path, &json!({"metadata": {"annotations": {key: value}}}))
            .await
    }

    /// Puts a value in the place that a JSON pointer names, whatever was there.
    pub async fn replace(&self, path: &str, pointer: &str, value: &Value) -> Result<()> {
        let patch = json!([{"op": "add", "path": pointer, "value": value}]);
        self.patch("json-patch", path, &patch).await
    }

    async fn patch(&self, form: &str, path: &str, patch: &Value) -> Result<()> {
        let content_type = format!("application/{form}+json");
        self.send(Method::PATCH, path, &content_type, Some(patch))
            .await
            .map(|_: IgnoredAny| ())
    }

    /// Deletes an object or a collection; one that is not there is fine.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        let deleted = self.send(Method::DELETE, path, JSON, Some(&options)).await;
        unless(deleted, Status::is_not_found).map(|_: Option<IgnoredAny>| ())
    }

    /// Follows a collection for good: first what is there, then every change, in order. A watch that
    /// breaks, because the server is stopped or the version too old, is restarted a moment later
    /// with what is there.
    pub async fn keep_following(&self, path: &str, mut seen: impl FnMut(ObjectChange)) {
        loop {
            let _ = self.follow(path, &mut seen).await;
            sleep(RESTART_PAUSE).await;
        }
    }

    async fn follow(&self, path: &str, seen: &mut impl FnMut(ObjectChange)) -> Result<()> {
        // Without a version a watch begins with what is there.
        let mut version = String::new();
        loop {
            let separator = if path.contains('?') { '&' } else { '?' };
            let uri = format!(
                "{path}{separator}watch=true&allowWatchBookmarks=true&resourceVersion={version}"
            );
            let request = Request::get(uri).body(Vec::new())?;
            let mut stream = pin!(answered(self.client.request_events::<Value>(request)).await?);
            while let Some(event) = stream.next().await {
                let (object, is_gone) = match event? {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                    WatchEvent::Deleted(object) => (object, true),
                    WatchEvent::Bookmark(bookmark) => {
                        version = bookmark.metadata.resource_version;
                        continue;
                    }
                    WatchEvent::Error(status) => anyhow::bail!("{path}: {}", status.message),
                };
                metadata(&object, "resourceVersion").clone_into(&mut version);
                seen(if is_gone {
                    ObjectChange::Gone(object)
                } else {
                    ObjectChange::Set(object)
                });
            }
        }
    }

    /// A token for a ServiceAccount, valid for an hour.
    pub async fn token(&self, namespace: &str, account: &str) -> Result<String> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600},
        });
        let answer = self.post(&path, &request).await?;
        let token = answer["status"]["token"]
            .as_str()
            .context("no token in the answer")?;
        secrets::all().register(token);
        Ok(token.into())
    }
}
