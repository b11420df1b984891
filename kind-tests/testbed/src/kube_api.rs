//! A Kubernetes API as its paths and JSON values: the testbed speaks to many kinds and needs a
//! type for none.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderName, Method, Request, Response};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{Status, WatchEvent};
use kube::{Client, Config};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::objects::{self, collection, name};
use crate::secrets;

/// How long an answer may take. An API server gives up after 60 s; on loopback it has answered long
/// before this.
const ANSWER: Duration = Duration::from_secs(30);
/// How long after a watch broke it is restarted.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

/// A client for one API server with one user's credentials.
#[derive(Clone)]
pub struct KubeApi {
    config: Config,
    client: Client,
}

/// A change that a watch reports.
#[derive(Clone, Debug)]
pub enum ObjectChange {
    /// The object is there, in this state.
    Set(Value),
    /// The object is gone; this was its last state.
    Gone(Value),
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
    /// A client for this server, and user if it knows any.
    pub(crate) fn of(config: Config) -> Result<Self> {
        Ok(Self {
            client: Client::try_from(config.clone())?,
            config,
        })
    }

    /// A client for this kubeconfig's current context.
    pub async fn connect(kubeconfig: &str) -> Result<Self> {
        let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.connect_timeout = Some(Duration::from_secs(5));
        // Watches of the testbed end when the test does; requests have a deadline of their own.
        config.read_timeout = None;
        Self::of(config)
    }

    /// The same, which shows also a 429, 503 or 504 instead of asking again.
    pub fn without_retries(&self) -> Result<Self> {
        let mut config = self.config.clone();
        config.default_retry = false;
        Self::of(config)
    }

    /// A client that impersonates another user, which needs the right to.
    pub fn acting_as(&self, user: &str) -> Result<Self> {
        let mut config = self.config.clone();
        let header = HeaderName::from_static("impersonate-user");
        config.headers.push((header, user.try_into()?));
        Self::of(config)
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        form: &str,
        body: Option<&Value>,
    ) -> Result<T> {
        let context = format!("{method} {path}");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, format!("application/{form}"));
        let body = body.map(Value::to_string).unwrap_or_default();
        answered(self.client.request(request.body(body.into_bytes())?))
            .await
            .context(context)
    }

    /// The whole answer to a request of any form, also to one that is refused.
    pub async fn answer(&self, request: Request<Vec<u8>>) -> Result<Response<Bytes>> {
        answered(async {
            let answer = self.client.send(request.map(Body::from)).await?;
            let (head, body) = answer.into_parts();
            Ok(Response::from_parts(head, body.collect_bytes().await?))
        })
        .await
    }

    /// An object or a list.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.send(Method::GET, path, "json", None).await
    }

    /// The objects in a collection.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>> {
        let mut list = self.get(path).await?;
        Ok(serde_json::from_value(list["items"].take())?)
    }

    /// The names of the objects in a collection.
    pub async fn names(&self, path: &str) -> Result<Vec<String>> {
        let objects = self.list(path).await?;
        Ok(objects.iter().map(|it| name(it).to_owned()).collect())
    }

    /// Creates an object; one that is there already stays as it is.
    pub async fn create(&self, object: &Value) -> Result<()> {
        let created = self.post(&collection(object)?, object).await;
        unless(created, Status::is_already_exists)
            .map(drop)
            .with_context(|| name(object).to_owned())
    }

    /// Creates objects, in order; those that are there already stay as they are.
    pub async fn create_all(&self, objects: &[Value]) -> Result<()> {
        for object in objects {
            self.create(object).await?;
        }
        Ok(())
    }

    /// Creates the objects that these YAML documents describe.
    pub async fn create_yaml(&self, documents: &str) -> Result<()> {
        self.create_all(&objects::all(documents)).await
    }

    /// Waits until something is there: an object that somebody creates, or a collection whose
    /// definition has just been created.
    pub async fn appears(&self, path: &str) -> Result<()> {
        let found = async || self.get(path).await.map(drop);
        crate::eventually(&format!("{path} is there"), found).await
    }

    /// Posts to a subresource or a review and returns the answer.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(Method::POST, path, "json", Some(body)).await
    }

    /// Merges a patch into an object.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<()> {
        self.patch("merge-patch+json", path, patch).await
    }

    /// Merges a patch into an object of a built-in kind, in whose lists items are merged by their
    /// keys (a condition by its type).
    pub async fn merge_items(&self, path: &str, patch: &Value) -> Result<()> {
        self.patch("strategic-merge-patch+json", path, patch).await
    }

    /// Sets or removes an annotation of an object.
    pub async fn annotate(&self, path: &str, key: &str, value: Option<&str>) -> Result<()> {
        self.merge(path, &json!({"metadata": {"annotations": {key: value}}}))
            .await
    }

    /// Puts a value in the place that a JSON pointer names, whatever was there.
    pub async fn replace(&self, path: &str, pointer: &str, value: &Value) -> Result<()> {
        let patch = json!([{"op": "add", "path": pointer, "value": value}]);
        self.patch("json-patch+json", path, &patch).await
    }

    async fn patch(&self, form: &str, path: &str, patch: &Value) -> Result<()> {
        let patched = self.send(Method::PATCH, path, form, Some(patch)).await;
        patched.map(|_: IgnoredAny| ())
    }

    /// Deletes an object or a collection; one that is not there is fine.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        let deleted = self.send(Method::DELETE, path, "json", Some(&options));
        unless(deleted.await, Status::is_not_found).map(|_: Option<IgnoredAny>| ())
    }

    /// Follows a collection for good: first what is there, then every change, in order. A watch that
    /// ends or breaks is restarted a moment later, with what is there.
    pub async fn keep_following(&self, path: &str, mut seen: impl FnMut(ObjectChange)) {
        loop {
            let _ = self.follow(path, &mut seen).await;
            sleep(RESTART_PAUSE).await;
        }
    }

    async fn follow(&self, path: &str, seen: &mut impl FnMut(ObjectChange)) -> Result<()> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let request = Request::get(format!("{path}{separator}watch=true")).body(Vec::new())?;
        let mut changes = pin!(answered(self.client.request_events(request)).await?);
        while let Some(change) = changes.next().await {
            match change? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    seen(ObjectChange::Set(object));
                }
                WatchEvent::Deleted(object) => seen(ObjectChange::Gone(object)),
                WatchEvent::Bookmark(_) | WatchEvent::Error(_) => break,
            }
        }
        Ok(())
    }

    /// A token for a ServiceAccount, valid for an hour.
    pub async fn token(&self, namespace: &str, account: &str) -> Result<String> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let answer = self.post(&path, &json!({"spec": {}})).await?;
        let token = answer["status"]["token"].as_str();
        let token = token.context("no token in the answer")?;
        secrets::all().register(token);
        Ok(token.into())
    }
}
