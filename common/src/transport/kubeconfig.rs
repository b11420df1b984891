//! A kubeconfig, as far as its current context leads: of all other entries nothing is read but the
//! name.
//!
//! ```text
//! bytes -> Document(s), the first of which wins -> CurrentContext (kube's types) -> ServerAccess
//! ```

mod tree;

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

use self::tree::Node;
use super::access::{Identity, ServerAccess};
use super::credential::impersonation;
use super::proxies::{proxy_of, usable};
use super::tls::Trust;

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

    pub fn error(&self, problem: impl Into<String>) -> KubeconfigError {
        KubeconfigError {
            field: self.clone(),
            problem: problem.into(),
        }
    }
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
        let broken = |(line, problem): (Option<u64>, &str)| KubeconfigError {
            field: Field {
                file: file.map(Path::to_owned),
                name: "it".to_owned(),
                line,
            },
            problem: problem.to_owned(),
        };
        let documents = tree::parse(bytes).map_err(broken)?.into_iter();
        let documents = documents.map(|root| Self {
            root,
            file: file.map(Path::to_owned),
        });
        Ok(documents.collect())
    }

    fn field(&self, name: &str, line: Option<u64>) -> Field {
        Field {
            file: self.file.clone(),
            name: name.to_owned(),
            line,
        }
    }

    /// The entry of this name, if there is one.
    fn entry(&self, section: &str, name: &str) -> Result<Option<&Node>, KubeconfigError> {
        let Some(list) = self.root.get(section) else {
            return Ok(None);
        };
        let items = list.items().ok_or_else(|| {
            let field = self.field(section, Some(list.line));
            field.error("is not a list")
        })?;
        let is_named = |item: &&Node| item.get("name").and_then(Node::text) == Some(name);
        Ok(items.iter().find(is_named))
    }
}

/// One part of the current context: its cluster or its user. Has no `Debug`: it holds credentials.
#[derive(Clone)]
pub struct Entry<T> {
    pub value: T,
    kind: &'static str,
    node: Option<Node>,
    file: Option<PathBuf>,
}

impl<T: DeserializeOwned + Default> Entry<T> {
    /// Finds the entry of this name in the first document that has it.
    fn find(
        documents: &[Document],
        section: &str,
        kind: &'static str,
        name: &str,
    ) -> Result<Option<Self>, KubeconfigError> {
        for document in documents {
            let Some(entry) = document.entry(section, name)? else {
                continue;
            };
            let mut found = Self {
                value: T::default(),
                kind,
                node: entry.get(kind).cloned(),
                file: document.file.clone(),
            };
            if let Some(node) = &found.node {
                let read: Result<T, _> = serde_path_to_error::deserialize(node.json());
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
        let mut line = node.line;
        let mut name = self.kind.to_owned();
        let mut place = Some(node);
        for segment in error.path().iter() {
            place = match segment {
                Segment::Map { key } => {
                    name.push_str(&format!(".{}", key.escape_debug()));
                    place.and_then(|node| node.get(key))
                }
                Segment::Seq { index } => {
                    name.push_str(&format!("[{index}]"));
                    place.and_then(|node| node.items()?.get(*index))
                }
                Segment::Enum { .. } | Segment::Unknown => place,
            };
            line = place.map_or(line, |node| node.line);
        }
        // serde's message quotes the value, but not after its last "expected".
        let said = error.inner().to_string();
        let problem = match said.rsplit_once(", expected ") {
            Some((_, expected)) => format!("is not {expected}"),
            None if said.starts_with("missing field") => format!("is incomplete: {said}"),
            None => "cannot be read".to_owned(),
        };
        let file = self.file.clone();
        Field {
            file,
            name,
            line: Some(line),
        }
        .error(problem)
    }
}

impl<T> Entry<T> {
    /// One that stands in no file.
    pub(crate) fn given(kind: &'static str, value: T) -> Self {
        Self {
            value,
            kind,
            node: None,
            file: None,
        }
    }

    pub fn field(&self, key: &str) -> Field {
        let node = self.node.as_ref().and_then(|node| node.get(key));
        Field {
            file: self.file.clone(),
            name: format!("{}.{key}", self.kind),
            line: node.map(|node| node.line),
        }
    }

    /// A text in PEM that is given in base64, else by a file.
    fn pem(
        &self,
        key: &str,
        data: Option<&str>,
        path: Option<&String>,
    ) -> Result<Option<Pem>, KubeconfigError> {
        if let Some(data) = data {
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

/// Settings read from a kubeconfig. Has no `Debug`: it holds credentials.
#[derive(Clone)]
pub struct CurrentContext {
    pub namespace: Option<String>,
    pub cluster: Entry<Cluster>,
    /// `None` if no entry has the name.
    pub user: Option<Entry<AuthInfo>>,
}

impl CurrentContext {
    /// Merges documents: the first that sets a value wins, as for client-go.
    ///
    /// # Errors
    /// If the current context or its cluster is missing, or an entry that it names cannot be read.
    pub fn of(documents: &[Document]) -> Result<Self, KubeconfigError> {
        const CURRENT: &str = "current-context";
        let named = documents.iter().find_map(|document| {
            let node = document.root.get(CURRENT)?;
            let name = node.text().filter(|name| !name.is_empty())?;
            Some((name, document.field(CURRENT, Some(node.line))))
        });
        let missing = || {
            let field = documents.first().map(|first| first.field(CURRENT, None));
            field
                .unwrap_or_else(|| Field::named(CURRENT))
                .error("is missing")
        };
        let (name, field) = named.ok_or_else(missing)?;
        let nothing = "names nothing that exists";
        let context = Entry::<Context>::find(documents, "contexts", "context", name)?;
        let context = context.ok_or_else(|| field.error(nothing))?;
        let names = &context.value;
        let cluster = Entry::find(documents, "clusters", "cluster", &names.cluster)?;
        let user = names.user.as_deref().unwrap_or_default();
        let mut context = Self {
            cluster: cluster.ok_or_else(|| context.field("cluster").error(nothing))?,
            user: Entry::find(documents, "users", "user", user)?,
            namespace: context.value.namespace.filter(|name| !name.is_empty()),
        };
        context.normalize();
        Ok(context)
    }

    /// Makes empty values absent ones, joins base64 that stands on several lines, and completes
    /// paths.
    fn normalize(&mut self) {
        let Entry { value, file, .. } = &mut self.cluster;
        absent_if_empty(&mut value.server);
        absent_if_empty(&mut value.tls_server_name);
        absent_if_empty(&mut value.proxy_url);
        join_lines(&mut value.certificate_authority_data);
        complete(&mut value.certificate_authority, file.as_deref());
        let Some(Entry { value, file, .. }) = &mut self.user else {
            return;
        };
        absent_if_empty(&mut value.username);
        absent_if_empty(&mut value.impersonate);
        absent_if_empty(&mut value.impersonate_uid);
        // Blanks around a token are none of it.
        let is_blank = |token: &mut SecretString| token.expose_secret().trim().is_empty();
        value.token.take_if(is_blank);
        join_lines(&mut value.client_certificate_data);
        let key = value.client_key_data.take();
        let mut key = key.map(|key| key.expose_secret().to_owned());
        join_lines(&mut key);
        value.client_key_data = key.map(SecretString::from);
        for path in [
            &mut value.token_file,
            &mut value.client_certificate,
            &mut value.client_key,
        ] {
            complete(path, file.as_deref());
        }
        // A command without a folder is looked for where programs are.
        if let Some(plugin) = &mut value.exec
            && plugin
                .command
                .as_ref()
                .is_some_and(|name| name.contains('/'))
        {
            complete(&mut plugin.command, file.as_deref());
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
        if !server
            .scheme_str()
            .is_some_and(|scheme| schemes.contains(&scheme))
        {
            let schemes: Vec<_> = schemes
                .iter()
                .map(|scheme| [scheme, "://"].concat())
                .collect();
            let problem = format!("must begin with {}", schemes.join(" or "));
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

/// The client certificate of a user, and its key.
fn identity(user: &Entry<AuthInfo>) -> Result<Option<Identity>, KubeconfigError> {
    const CERTIFICATE: &str = "client-certificate";
    const KEY: &str = "client-key";
    let given = &user.value;
    let certificate = user.pem(
        CERTIFICATE,
        given.client_certificate_data.as_deref(),
        given.client_certificate.as_ref(),
    )?;
    let key = given.client_key_data.as_ref();
    let key = key.map(ExposeSecret::expose_secret);
    let key = user.pem(KEY, key, given.client_key.as_ref())?;
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(Identity { certificate, key })),
        (Some(_), None) => Err(user.field("client-key-data").error("is missing")),
        (None, Some(_)) => {
            let field = user.field("client-certificate-data");
            Err(field.error("is missing"))
        }
    }
}

fn absent_if_empty(value: &mut Option<String>) {
    value.take_if(|value| value.is_empty());
}

/// A path starts from the folder of the file that it stands in.
fn complete(path: &mut Option<String>, file: Option<&Path>) {
    absent_if_empty(path);
    if let (Some(path), Some(folder)) = (path, file.and_then(Path::parent)) {
        *path = folder.join(&*path).to_string_lossy().into_owned();
    }
}

/// Secrets made by hand often carry line breaks inside of the base64 text.
fn join_lines(data: &mut Option<String>) {
    if let Some(data) = data {
        data.retain(|character| !character.is_whitespace());
    }
    absent_if_empty(data);
}

#[cfg(test)]
mod tests;
