//! A plain HTTP client and a server for it.

use std::time::Duration;

use api_server::{Authority, MemoryApi, Options};
use serde_json::{Value, json};

/// No answer of a healthy server takes this long.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// A Deployment whose pods are all ready.
pub fn deployment(namespace: &str, name: &str, replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": name, "image": name}]}}},
        "status": {"replicas": replicas, "readyReplicas": replicas}})
}

pub struct ApiBed {
    pub server: MemoryApi,
    pub http: reqwest::Client,
    pub token: String,
}

pub struct TestAnswer {
    pub code: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: Vec<u8>,
}

impl TestAnswer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }
}

impl ApiBed {
    pub async fn start() -> Self {
        Self::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Self {
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        let authority = Authority::new().unwrap();
        let server = MemoryApi::start(&authority, options).await.unwrap();
        let ca = reqwest::Certificate::from_pem(authority.pem().as_bytes()).unwrap();
        let http = reqwest::Client::builder()
            .tls_certs_only([ca])
            .no_proxy()
            .timeout(DEADLINE)
            .build()
            .unwrap();
        Self {
            server,
            http,
            token: "admin".to_owned(),
        }
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        self.http
            .request(method, format!("{}{path}", self.server.url()))
            .bearer_auth(&self.token)
    }

    pub async fn send(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<TestAnswer, reqwest::Error> {
        let response = request.send().await?;
        let (code, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(TestAnswer {
            code,
            headers,
            body: response.bytes().await?.to_vec(),
        })
    }

    pub async fn get(&self, path: &str) -> TestAnswer {
        self.send(self.request("GET", path)).await.unwrap()
    }

    pub async fn post(&self, path: &str, body: &Value) -> TestAnswer {
        let request = self.request("POST", path).body(body.to_string());
        self.send(request).await.unwrap()
    }
}
