//! A Kubernetes API as its paths and JSON values: the test bed speaks to many kinds and needs a
//! type for none.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::WatchEvent;
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::secrets;

/// How long an answer may take. An API server gives up after 60 s; on loopback it has answered long
/// before this.
const ANSWER: Duration = Duration::from_secs(30);

/// A client for one API server with one user's credentials.
#[derive(Clone)]
pub struct KubeApi {
    client: Client,
    /// Whom it acts as, if not as itself.
    user: Option<String>,
}

/// A change that a watch reports.
#[derive(Clone, Debug)]
pub enum Change {
    /// The object is there, in this state.
    Set(Value),
    /// The object is gone; this was its last state.
    Gone(Value),
}

/// A kubeconfig with a bearer token, which nothing may print from now on.
pub fn kubeconfig(server: &str, authority: &str, token: &str) -> String {
    secrets::all().hold(token);
    crate::api::kubeconfig(server, authority, token)
}

/// What a request is answered; an error when it takes too long.
async fn answered<T>(
    answer: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    let late = |_| {
        Err(kube::Error::Service(
            format!("no answer within {ANSWER:?}").into(),
        ))
    };
    tokio::time::timeout(ANSWER, answer)
        .await
        .unwrap_or_else(late)
}

impl KubeApi {
    /// A client for this kubeconfig's current context.
    pub async fn connect(kubeconfig: &str) -> Result<Self> {
        let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.connect_timeout = Some(Duration::from_secs(5));
        // Watches of the test bed end when the test does; requests have a deadline of their own.
        config.read_timeout = None;
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

    /// The same, as another user. Needs the right to act as others.
    pub fn acting_as(&self, user: &str) -> Self {
        Self {
            client: self.client.clone(),
            user: Some(user.into()),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let bytes = body
            .map(|body| body.to_string().into_bytes())
            .unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, kind);
        if let Some(user) = &self.user {
            request = request.header("Impersonate-User", user);
        }
        answered(
            self.client
                .request(request.body(bytes).map_err(kube::Error::HttpError)?),
        )
        .await
    }

    /// The body of an answer that is no JSON.
    pub async fn text(&self, path: &str) -> Result<String> {
        Ok(answered(
            self.client
                .request_text(Request::get(path).body(Vec::new())?),
        )
        .await?)
    }

    /// An object or a list.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.send(Method::GET, path, "application/json", None)
            .await
            .with_context(|| format!("GET {path}"))
    }

    /// An object, or none when it does not exist.
    pub async fn find(&self, path: &str) -> Result<Option<Value>> {
        match self.send(Method::GET, path, "application/json", None).await {
            Ok(value) => Ok(Some(value)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error).with_context(|| format!("GET {path}")),
        }
    }

    /// Creates an object in the collection at `path`; one that is there already stays as it is.
    pub async fn create(&self, path: &str, object: &Value) -> Result<()> {
        match self
            .send(Method::POST, path, "application/json", Some(object))
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
            Err(error) => {
                Err(error).with_context(|| format!("POST {path} {}", object["metadata"]["name"]))
            }
        }
    }

    /// Posts to a subresource or a review and returns the answer.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.send(Method::POST, path, "application/json", Some(body))
            .await
            .with_context(|| format!("POST {path}"))
    }

    /// Merges a patch into an object.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Value> {
        self.patch("merge-patch", path, patch).await
    }

    /// The same for an object of a built-in kind, in whose lists items are merged by their keys (a
    /// condition by its type).
    pub async fn merge_items(&self, path: &str, patch: &Value) -> Result<()> {
        self.patch("strategic-merge-patch", path, patch)
            .await
            .map(drop)
    }

    /// Puts a value in the place that a JSON pointer names, whatever was there.
    pub async fn replace(&self, path: &str, pointer: &str, value: &Value) -> Result<()> {
        let patch = json!([{"op": "add", "path": pointer, "value": value}]);
        self.patch("json-patch", path, &patch).await.map(drop)
    }

    async fn patch(&self, form: &str, path: &str, patch: &Value) -> Result<Value> {
        let kind = format!("application/{form}+json");
        self.send(Method::PATCH, path, &kind, Some(patch))
            .await
            .with_context(|| format!("PATCH {path} {form}"))
    }

    /// Deletes an object or a collection; one that is not there is fine.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        match self
            .send(Method::DELETE, path, "application/json", Some(&options))
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error).with_context(|| format!("DELETE {path}")),
        }
    }

    /// The names of the objects in a collection.
    pub async fn names(&self, path: &str) -> Result<Vec<String>> {
        let list = self.get(path).await?;
        let items = list["items"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        Ok(items
            .iter()
            .filter_map(|item| item["metadata"]["name"].as_str().map(Into::into))
            .collect())
    }

    /// Follows a collection until an error or the caller's end: first what is there, then every
    /// change, in order.
    pub async fn follow(&self, path: &str, mut seen: impl FnMut(Change)) -> Result<()> {
        // Without a version a watch begins with what is there.
        let mut version = String::new();
        loop {
            let uri =
                format!("{path}?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
            let stream = answered(
                self.client
                    .request_events::<Value>(Request::get(uri).body(Vec::new())?),
            )
            .await?;
            let mut stream = stream.boxed();
            while let Some(event) = stream.next().await {
                let change = match event? {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => Change::Set(object),
                    WatchEvent::Deleted(object) => Change::Gone(object),
                    WatchEvent::Bookmark(bookmark) => {
                        version = bookmark.metadata.resource_version;
                        continue;
                    }
                    WatchEvent::Error(status) => {
                        anyhow::bail!("watch of {path}: {}", status.message)
                    }
                };
                let (Change::Set(object) | Change::Gone(object)) = &change;
                object["metadata"]["resourceVersion"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut version);
                seen(change);
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
        secrets::all().hold(token);
        Ok(token.into())
    }
}
