//! Objects of an API server, by kube's own lists and watches.
//!
//! ```text
//! answer --> ObjectList or WatchEvent of Readable<K> --bytes of one object--> the few fields that are kept
//! ```
//!
//! Each object is read from its own bytes: one that cannot be read is a value of its own, beside all
//! others. What nobody reads is skipped without being built, however deep it is nested.

mod fields;
mod readable;

use std::time::Duration;

use kube::api::ListParams;
use kube::core::{ObjectList, Request};
use kube::{Api, Error, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

pub use self::fields::{apart, if_readable, metadata};
pub use self::readable::Readable;

/// The most characters of an error that are kept: serde repeats a value of the wrong type in full,
/// whatever its length.
const SHOWN_OF_ERROR: usize = 200;
/// Longest wait for the answer to a page of a list: kube-apiserver gives up after 60 s
/// (--request-timeout).
const PAGE_TIMEOUT: Duration = Duration::from_secs(65);
/// The most that a list may hold and the most pages it may come in, whatever the API server says:
/// Kubernetes is made for up to 150,000 pods, and 10 Clusters come to a page.
pub(crate) const MAX_LISTED: usize = 200_000;
pub(crate) const MAX_PAGES: usize = 1_000;

/// Failure of a list or a watch.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("no answer to a list within {PAGE_TIMEOUT:?}")]
    Timeout,
    #[error("an answer has no resourceVersion")]
    NoVersion,
    #[error(
        "the list has more than {MAX_LISTED} objects or {MAX_PAGES} pages, or a page follows itself"
    )]
    Endless,
    #[error("the watch ended as soon as it was open")]
    VeryShort,
    #[error(transparent)]
    Api(#[from] Error),
}

/// Lists all pages, of `params.limit` objects each, and hands over each object. Returns the version
/// that a watch continues from.
///
/// # Errors
/// When a page is not answered, or not with a list, or no page is the last one.
pub async fn list<K: Resource + Clone + DeserializeOwned>(
    api: &Api<K>,
    mut params: ListParams,
    mut each: impl FnMut(Readable<K>),
) -> Result<String, ReadError> {
    let client = api.clone().into_client();
    let mut count = 0;
    for _ in 0..MAX_PAGES {
        let request = Request::new(api.resource_url()).list(&params);
        let page = client.request(request.map_err(Error::BuildRequest)?);
        let page = timeout(PAGE_TIMEOUT, page).await;
        let page: ObjectList<Readable<K>> = page.map_err(|_| ReadError::Timeout)??;
        count += page.items.len();
        if count > MAX_LISTED {
            return Err(ReadError::Endless);
        }
        page.items.into_iter().for_each(&mut each);
        let next = page.metadata.continue_.filter(|token| !token.is_empty());
        if next.is_none() {
            return known_version(page.metadata.resource_version);
        }
        if next == params.continue_token {
            return Err(ReadError::Endless);
        }
        params.continue_token = next;
    }
    Err(ReadError::Endless)
}

/// The version that a watch continues from.
pub(crate) fn known_version(version: Option<String>) -> Result<String, ReadError> {
    let known = version.filter(|version| !version.is_empty());
    known.ok_or(ReadError::NoVersion)
}

/// Reads a value; the error names the field.
fn read<'de, T: Deserialize<'de>>(json: &'de str) -> Result<T, String> {
    serde_json::from_str(json).or_else(|_| {
        // The path of a field costs an allocation for each one, so it is found out apart.
        let mut deserializer = serde_json::Deserializer::from_str(json);
        serde_path_to_error::deserialize(&mut deserializer)
            .map_err(|error| error.to_string().chars().take(SHOWN_OF_ERROR).collect())
    })
}

#[cfg(test)]
mod tests;
