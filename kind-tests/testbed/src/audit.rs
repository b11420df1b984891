//! kube-apiserver's audit log: who asked for what, and what the answer was.

use std::path::{Path, PathBuf};

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

/// The audit log of one API server.
#[derive(Clone, Debug)]
pub struct Audit {
    path: PathBuf,
}

/// A place in an audit log, from which on a scenario reads.
#[derive(Debug, Default)]
pub struct Mark(u64);

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

impl Audit {
    /// Reads the log at this path.
    pub fn of(path: &Path) -> Self {
        Self { path: path.into() }
    }

    /// The place where the log ends now.
    pub fn mark(&self) -> Mark {
        Mark(std::fs::metadata(&self.path).map_or(0, |file| file.len()))
    }

    /// All requests since that place, in the order of their answers.
    pub fn since(&self, mark: &Mark) -> Vec<Asked> {
        let bytes = std::fs::read(&self.path).unwrap_or_default();
        let from = usize::try_from(mark.0)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        bytes[from..]
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .map(|event| asked(&event))
            .collect()
    }
}

fn asked(event: &Value) -> Asked {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &event["objectRef"];
    let resource = match object["subresource"].as_str() {
        Some(subresource) => format!("{}/{subresource}", text(&object["resource"])),
        None => text(&object["resource"]),
    };
    Asked {
        stage: text(&event["stage"]),
        user: text(&event["user"]["username"]),
        verb: text(&event["verb"]),
        uri: text(&event["requestURI"]),
        resource,
        namespace: text(&object["namespace"]),
        name: text(&object["name"]),
        code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
        at: text(&event["requestReceivedTimestamp"]),
        answered: text(&event["stageTimestamp"]),
    }
}
