//! kube-apiserver's audit log: who asked for what, and what the answer was.

use std::path::Path;

use serde_json::Value;

/// What is written: every request, without bodies, but those of the testbed itself and of the API
/// server's own loops.
pub const POLICY: &str = r#"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: [admin, "system:apiserver"]
- level: Metadata
"#;

/// A place in an audit log, from which on a scenario reads.
#[derive(Debug, Default)]
pub struct Mark(pub usize);

/// One answered request. A watch is written twice, when it begins (`ResponseStarted`) and when it
/// ends; both are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// `ResponseStarted`, `ResponseComplete` or `Panic`.
    pub stage: String,
    /// The user's name.
    pub user: String,
    /// get, list, watch, update, patch, ...
    pub verb: String,
    /// Path and query.
    pub uri: String,
    /// The plural of the resource, with `/subresource`; empty for a path that is no resource.
    pub resource: String,
    /// The namespace, empty for none.
    pub namespace: String,
    /// The object's name, empty for none.
    pub name: String,
    /// The HTTP status.
    pub code: u64,
    /// When it was received: RFC 3339, in microseconds.
    pub at: String,
    /// When this stage was reached, which for `ResponseComplete` is when it was answered: RFC 3339,
    /// in microseconds.
    pub answered: String,
}

impl Asked {
    /// Whether nothing is stored of it.
    pub fn is_dry_run(&self) -> bool {
        self.uri.contains("dryRun=All")
    }

    /// Whether it is a PATCH of a Deployment.
    pub fn patches_deployment(&self) -> bool {
        self.verb == "patch" && self.resource == "deployments" && !self.is_dry_run()
    }
}

/// All requests in the log at this path since that place, in the order of their answers.
pub fn since(path: &Path, mark: &Mark) -> Vec<Asked> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let lines = bytes.get(mark.0..).unwrap_or_default();
    let lines = lines.split(|byte| *byte == b'\n');
    let events = lines.filter_map(|line| serde_json::from_slice(line).ok());
    events.map(|event: Value| asked(&event)).collect()
}

fn asked(event: &Value) -> Asked {
    let text = |pointer: &str| {
        let value = event.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let mut resource = text("/objectRef/resource");
    if let Some(subresource) = event["objectRef"]["subresource"].as_str() {
        resource += &format!("/{subresource}");
    }
    Asked {
        stage: text("/stage"),
        user: text("/user/username"),
        verb: text("/verb"),
        uri: text("/requestURI"),
        resource,
        namespace: text("/objectRef/namespace"),
        name: text("/objectRef/name"),
        code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
        at: text("/requestReceivedTimestamp"),
        answered: text("/stageTimestamp"),
    }
}
