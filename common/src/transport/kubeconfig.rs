//! A kubeconfig, as far as its current context leads: of all other entries nothing is read but the
//! name.
//!
//! ```text
//! bytes -> Document(s), the first of which wins -> CurrentContext (kube's types) -> ServerAccess
//! ```

mod node;

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::Uri;
use kube::Config;
use kube::config::{AuthInfo, Cluster, Context};
use rustls::pki_types::ServerName;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use self::node::Node;
use super::access::{Identity, ServerAccess};
use super::credential::impersonation;
use super::proxies::{proxy_of, usable};
use super::tls::Trust;
use crate::yaml::Yaml;

/// A field that cannot be used. Contains nothing of its value, which may be a credential.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{field} {problem}")]
pub struct KubeconfigError {
    pub field: Field,
    pub problem: String,
}

/// A field, where it stands.
#[derive(Clone, Debug, Default)]
pub struct Field {
    file: Option<PathBuf>,
    pub name: String,
    /// `None` for what is missing.
    pub line: Option<u64>,
}

impl Field {
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// A field within this one; the whole where the path is a dot.
    fn part(&self, path: &impl Display) -> Self {
        let name = format!("{}.{path}", self.name);
        Self {
            name: name.trim_end_matches('.').to_owned(),
            ..self.clone()
        }
    }

    pub fn error(&self, problem: impl Into<String>) -> KubeconfigError {
        KubeconfigError {
            field: self.clone(),
            problem: problem.into(),
        }
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "kubeconfig {}: ", file.display())?;
        }
        f.write_str(&self.name)?;
        match self.line {
            Some(line) => write!(f, " (line {line})"),
            None => Ok(()),
        }
    }
}

/// A text in PEM, and the field that it is of.
#[derive(Clone)]
pub struct Pem {
    pub field: Field,
    pub text: Vec<u8>,
}

/// One of the documents that a kubeconfig consists of.
pub struct Document {
    root: Node,
    file: Option<PathBuf>,
}

impl Document {
    /// Reads all documents of a text, which came out of this file.
    ///
    /// # Errors
    /// If it is no YAML.
    pub fn parse(bytes: &[u8], file: Option<&Path>) -> Result<Vec<Self>, KubeconfigError> {
        let file = file.map(Path::to_owned);
        let documents = node::parse(bytes).map_err(|(line, problem)| {
            let (file, name) = (file.clone(), "it".to_owned());
            Field { file, name, line }.error(problem)
        })?;
        let documents = documents.into_iter().map(|root| {
            let file = file.clone();
            Self { root, file }
        });
        Ok(documents.collect())
    }

    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    fn field(&self, name: &str, node: Option<&Node>) -> Field {
        Field {
            file: self.file.clone(),
            name: name.to_owned(),
            line: node.map(|node| node.referenced.line()),
        }
    }

    /// The entry of this name, if there is one.
    fn entry(&self, section: &str, name: &str) -> Result<Option<&Node>, KubeconfigError> {
        let Some(list) = self.root.value.get(section) else {
            return Ok(None);
        };
        let Yaml::List(items) = &list.value else {
            return Err(self.field(section, Some(list)).error("is not a list"));
        };
        let is_named = |item: &&Node| item.value.get("name").and_then(text) == Some(name);
        Ok(items.iter().find(is_named))
    }
}

/// One part of the current context: its cluster or its user. Has no `Debug`: it holds credentials.
#[derive(Clone)]
pub struct Entry<T> {
    pub value: T,
    whole: Field,
    node: Option<Node>,
}

impl<T: DeserializeOwned + Default> Entry<T> {
    /// Finds the entry of this name in the first document that has it.
    fn find(
        documents: &[Document],
        section: &str,
        kind: &str,
        name: &str,
    ) -> Result<Option<Self>, KubeconfigError> {
        for document in documents {
            let Some(entry) = document.entry(section, name)? else {
                continue;
            };
            let node = entry.value.get(kind);
            let mut found = Self {
                value: T::default(),
                whole: document.field(kind, node),
                node: node.cloned(),
            };
            if let Some(node) = node {
                let read: Result<T, _> = serde_path_to_error::deserialize(node::json(node));
                found.value = read.map_err(|error| found.unreadable(node, &error))?;
            }
            return Ok(Some(found));
        }
        Ok(None)
    }

    fn unreadable(
        &self,
        node: &Node,
        error: &serde_path_to_error::Error<serde_json::Error>,
    ) -> KubeconfigError {
        let at = error.path().iter().fold(node, |at, segment| {
            let part = match (segment, &at.value) {
                (Segment::Map { key }, value) => value.get(key),
                (Segment::Seq { index }, Yaml::List(items)) => items.get(*index),
                _ => None,
            };
            part.unwrap_or(at)
        });
        let path = error.path().to_string();
        // serde's message quotes the value, but not after its last "expected".
        let said = error.inner().to_string();
        let problem = match said.rsplit_once(", expected ") {
            Some((_, expected)) => format!("is not {expected}"),
            None if said.starts_with("missing field") => format!("is incomplete: {said}"),
            None => "cannot be read".to_owned(),
        };
        let field = Field {
            line: Some(at.referenced.line()),
            ..self.whole.part(&path.escape_debug())
        };
        field.error(problem)
    }
}

impl<T> Entry<T> {
    /// One that stands in no file.
    pub(crate) fn given(kind: &str, value: T) -> Self {
        let (whole, node) = (Field::named(kind), None);
        Self { value, whole, node }
    }

    pub fn field(&self, key: &str) -> Field {
        let node = self.node.as_ref().and_then(|node| node.value.get(key));
        Field {
            line: node.map(|node| node.referenced.line()),
            ..self.whole.part(&key)
        }
    }

    /// A text in PEM that is given in base64, on one line or several, else by a file.
    fn pem(
        &self,
        key: &str,
        data: Option<&str>,
        path: Option<&String>,
    ) -> Result<Option<Pem>, KubeconfigError> {
        let data: String = data.unwrap_or_default().split_whitespace().collect();
        if !data.is_empty() {
            let field = self.field(&format!("{key}-data"));
            return match BASE64_STANDARD.decode(data) {
                Ok(text) => Ok(Some(Pem { field, text })),
                Err(_) => Err(field.error("is not base64")),
            };
        }
        let Some(path) = path else { return Ok(None) };
        let field = self.field(key);
        match std::fs::read(path) {
            Ok(text) => Ok(Some(Pem { field, text })),
            Err(error) => Err(field.error(format!("names a file that cannot be read: {error}"))),
        }
    }
}

const NOTHING: &str = "names nothing that exists";

/// Settings read from a kubeconfig. Has no `Debug`: it holds credentials.
#[derive(Clone)]
pub struct CurrentContext {
    pub cluster: Entry<Cluster>,
    /// `None` if the context names none.
    pub user: Option<Entry<AuthInfo>>,
}

impl CurrentContext {
    /// Merges documents: the first that sets a value wins, as for client-go.
    ///
    /// # Errors
    /// If the current context is missing, or an entry that it names is missing or cannot be read.
    pub fn of(documents: &[Document]) -> Result<Self, KubeconfigError> {
        const CURRENT: &str = "current-context";
        let named = documents.iter().find_map(|document| {
            let node = document.root.value.get(CURRENT)?;
            let name = text(node).filter(|name| !name.is_empty())?;
            Some((name, document.field(CURRENT, Some(node))))
        });
        let missing = || {
            let field = documents.first().map(|first| first.field(CURRENT, None));
            field
                .unwrap_or_else(|| Field::named(CURRENT))
                .error("is missing")
        };
        let (name, field) = named.ok_or_else(missing)?;
        let context = Self::named(documents, name)?;
        context.ok_or_else(|| field.error(NOTHING))
    }

    /// The context of this name, whichever is the current one; `None` if there is none.
    ///
    /// # Errors
    /// As of [`Self::of`].
    pub fn named(documents: &[Document], name: &str) -> Result<Option<Self>, KubeconfigError> {
        let context = Entry::<Context>::find(documents, "contexts", "context", name)?;
        let Some(context) = context else {
            return Ok(None);
        };
        let missing = |key: &str| context.field(key).error(NOTHING);
        let names = &context.value;
        let cluster = Entry::find(documents, "clusters", "cluster", &names.cluster)?;
        let user = match names.user.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => {
                let user = Entry::find(documents, "users", "user", name)?;
                Some(user.ok_or_else(|| missing("user"))?)
            }
            None => None,
        };
        let mut used = Self {
            cluster: cluster.ok_or_else(|| missing("cluster"))?,
            user,
        };
        used.normalize();
        Ok(Some(used))
    }

    /// Makes empty values absent ones, and completes paths.
    fn normalize(&mut self) {
        let Entry { value, whole, .. } = &mut self.cluster;
        absent_if_empty(&mut value.server);
        absent_if_empty(&mut value.tls_server_name);
        absent_if_empty(&mut value.proxy_url);
        complete(&mut value.certificate_authority, whole);
        let Some(Entry { value, whole, .. }) = &mut self.user else {
            return;
        };
        absent_if_empty(&mut value.username);
        absent_if_empty(&mut value.impersonate);
        absent_if_empty(&mut value.impersonate_uid);
        // Blanks around a token are none of it.
        let is_blank = |token: &mut SecretString| token.expose_secret().trim().is_empty();
        value.token.take_if(is_blank);
        for path in [
            &mut value.token_file,
            &mut value.client_certificate,
            &mut value.client_key,
        ] {
            complete(path, whole);
        }
        // A command without a folder is looked for where programs are.
        if let Some(plugin) = &mut value.exec
            && plugin
                .command
                .as_ref()
                .is_some_and(|name| name.contains('/'))
        {
            complete(&mut plugin.command, whole);
        }
    }

    /// Tells a plugin of the cluster, where it is to know it. May read the file of an authority.
    ///
    /// # Errors
    /// If that cannot be read.
    pub fn prepare_plugin(&mut self) -> Result<(), KubeconfigError> {
        let plugin = self.user.as_mut().and_then(|user| user.value.exec.as_mut());
        if let Some(plugin) = plugin.filter(|plugin| plugin.provide_cluster_info) {
            let cluster = (&self.cluster.value).try_into();
            plugin.cluster = Some(cluster.map_err(|_| {
                let field = self.cluster.field("certificate-authority");
                field.error("cannot be read for the exec plugin")
            })?);
        }
        Ok(())
    }

    /// The way to the server, whose URL must have one of these schemes.
    ///
    /// # Errors
    /// If a field cannot be used.
    pub fn access(&self, schemes: &[&str]) -> Result<ServerAccess, KubeconfigError> {
        let server = self.server(schemes)?;
        let user = self.user.as_ref();
        Ok(ServerAccess {
            server_name: self.server_name()?,
            proxy: match &self.cluster.value.proxy_url {
                Some(proxy) => {
                    let field = self.cluster.field("proxy-url");
                    Some(usable(proxy).map_err(|problem| field.error(problem))?)
                }
                None => proxy_of(&server, |variable| std::env::var(variable).ok())?,
            },
            trust: self.trust(&server)?,
            server,
            identity: user.map(identity).transpose()?.flatten(),
            headers: user.map(impersonation).transpose()?.unwrap_or_default(),
        })
    }

    fn server(&self, schemes: &[&str]) -> Result<Uri, KubeconfigError> {
        let field = self.cluster.field("server");
        let server = self.cluster.value.server.as_ref();
        let server = server.ok_or_else(|| field.error("is missing"))?;
        let server: Uri = server.parse().map_err(|_| field.error("is not a URL"))?;
        let scheme = server.scheme_str();
        if !scheme.is_some_and(|scheme| schemes.contains(&scheme)) {
            let problem = format!("must begin with {}://", schemes.join(":// or "));
            return Err(field.error(problem));
        }
        if server.host().is_none_or(str::is_empty) {
            return Err(field.error("has no host"));
        }
        Ok(server)
    }

    fn server_name(&self) -> Result<Option<ServerName<'static>>, KubeconfigError> {
        let name = self.cluster.value.tls_server_name.clone();
        let name = name.map(ServerName::try_from).transpose();
        name.map_err(|_| {
            let field = self.cluster.field("tls-server-name");
            field.error("is neither a DNS name nor an IP address")
        })
    }

    fn trust(&self, server: &Uri) -> Result<Trust, KubeconfigError> {
        let cluster = &self.cluster.value;
        let mut config = Config::new(server.clone());
        config.accept_invalid_certs = cluster.insecure_skip_tls_verify == Some(true);
        let authorities = self.cluster.pem(
            "certificate-authority",
            cluster.certificate_authority_data.as_deref(),
            cluster.certificate_authority.as_ref(),
        )?;
        Ok(match authorities {
            Some(authorities) if !config.accept_invalid_certs => Trust::Authorities(authorities),
            _ => Trust::Kube(Box::new(config)),
        })
    }
}

fn text(node: &Node) -> Option<&str> {
    match &node.value {
        Yaml::Scalar(scalar) => scalar.as_str(),
        _ => None,
    }
}

/// The client certificate of a user, and its key.
fn identity(user: &Entry<AuthInfo>) -> Result<Option<Identity>, KubeconfigError> {
    let given = &user.value;
    let certificate = user.pem(
        "client-certificate",
        given.client_certificate_data.as_deref(),
        given.client_certificate.as_ref(),
    )?;
    let key = given.client_key_data.as_ref();
    let key = key.map(ExposeSecret::expose_secret);
    let key = user.pem("client-key", key, given.client_key.as_ref())?;
    if certificate.is_none() && key.is_none() {
        return Ok(None);
    }
    let missing = |key: &str| user.field(key).error("is missing");
    Ok(Some(Identity {
        certificate: certificate.ok_or_else(|| missing("client-certificate-data"))?,
        key: key.ok_or_else(|| missing("client-key-data"))?,
    }))
}

fn absent_if_empty(value: &mut Option<String>) {
    value.take_if(|value| value.is_empty());
}

/// A path starts from the folder of the file that it stands in.
fn complete(path: &mut Option<String>, Field { file, .. }: &Field) {
    absent_if_empty(path);
    if let (Some(path), Some(folder)) = (path, file.as_deref().and_then(Path::parent)) {
        *path = folder.join(&*path).to_string_lossy().into_owned();
    }
}

#[cfg(test)]
mod tests;
