//! Reads objects of an API server, each from its own bytes.
//!
//! ```text
//! answer --pieces--> framing --one object of a list, one line of a watch--> the few fields that are kept
//! ```
//!
//! kube builds a tree of everything in an object before it takes a field out of it, so that one
//! which is nested deeply ends the list of all others, and one with many small values takes hundreds
//! of times its size. Here what nobody reads is skipped without being built, and of an answer one
//! object is in memory at a time.

mod event;
mod fields;
mod framing;

use futures::{AsyncBufRead, AsyncBufReadExt};
use http::Request;
use kube::api::{GetParams, ListParams, WatchParams};
use kube::core::request::Request as RequestBuilder;
use kube::{Api, Error, Resource};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};

use self::framing::{ListFramer, Pieces};
use crate::api_failure::ApiFailure;
use crate::change::Key;

pub(crate) use self::event::{ObjectEvent, ObjectEvents};
pub use self::fields::{apart, if_readable, metadata};

/// The most characters of an error that are kept: serde repeats a value of the wrong type in full,
/// whatever its length.
const SHOWN_OF_ERROR: usize = 200;

#[derive(Debug)]
pub struct UnreadableObject {
    pub(crate) key: Key,
    pub(crate) version: Option<String>,
    pub(crate) error: String,
}

/// The part of an object that tells it from others, whatever else it holds.
#[derive(Deserialize)]
struct ObjectName {
    metadata: NameMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NameMetadata {
    /// Empty in a bookmark.
    #[serde(default)]
    name: String,
    namespace: Option<String>,
    resource_version: Option<String>,
}

impl ObjectName {
    /// The name of an object, which has one, and its version.
    fn of_object(json: &[u8]) -> kube::Result<(Key, Option<String>)> {
        let read = Self::read(json)?;
        if read.0.name.is_empty() {
            let nameless = serde::de::Error::custom("an object has no name");
            return Err(Error::SerdeError(nameless));
        }
        Ok(read)
    }

    fn read(json: &[u8]) -> kube::Result<(Key, Option<String>)> {
        let Self { metadata } = serde_json::from_slice(json).map_err(Error::SerdeError)?;
        let key = Key {
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name,
        };
        Ok((key, metadata.resource_version))
    }
}

#[derive(Deserialize)]
struct PageEnd {
    metadata: PageMetadata,
    /// The objects themselves are read before.
    #[serde(rename = "items", deserialize_with = "present_or_null")]
    _items: (),
}

/// End of a page of a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageMetadata {
    pub(crate) resource_version: Option<String>,
    #[serde(rename = "continue")]
    pub(crate) next: Option<String>,
}

/// Reads one page of a list, and hands over each of its objects as soon as it is there.
///
/// # Errors
/// When the API server does not answer with a list, or what `each` returns.
pub async fn list<K, E>(
    api: &Api<K>,
    params: &ListParams,
    mut each: impl FnMut(Result<K, UnreadableObject>) -> Result<(), E>,
) -> Result<PageMetadata, E>
where
    K: Resource + Clone + DeserializeOwned,
    E: From<Error>,
{
    let request = RequestBuilder::new(api.resource_url()).list(params);
    let mut body = send(api, request).await?;
    let mut page = ListFramer::default();
    loop {
        let mut piece = body.fill_buf().await.map_err(Error::ReadEvents)?;
        if piece.is_empty() {
            break;
        }
        let length = piece.len();
        while let Some(object) = page.next(&mut piece)? {
            each(read_object(object)?)?;
        }
        body.consume_unpin(length);
    }
    let end: PageEnd = serde_json::from_slice(page.end()).map_err(Error::SerdeError)?;
    Ok(end.metadata)
}

/// Reads one object; `None` if the API server does not have it.
///
/// # Errors
/// When the API server does not answer with an object that can be read.
pub async fn get<K: Resource + Clone + DeserializeOwned>(
    api: &Api<K>,
    name: &str,
) -> kube::Result<Option<K>> {
    let request = RequestBuilder::new(api.resource_url()).get(name, &GetParams::default());
    let mut body = match send(api, request).await {
        Err(error) if ApiFailure::from(&error) == ApiFailure::NotFound => return Ok(None),
        body => body?,
    };
    let mut object = Pieces::default();
    loop {
        let piece = body.fill_buf().await.map_err(Error::ReadEvents)?;
        if piece.is_empty() {
            break;
        }
        object.push(piece)?;
        let length = piece.len();
        body.consume_unpin(length);
    }
    let object = serde_json::from_slice(object.joined());
    object.map(Some).map_err(Error::SerdeError)
}

/// Opens a watch.
///
/// # Errors
/// When the API server does not answer that it watches.
pub(crate) async fn watch<K: Resource + Clone + DeserializeOwned>(
    api: &Api<K>,
    params: &WatchParams,
    version: &str,
) -> kube::Result<ObjectEvents<K, impl AsyncBufRead + Unpin + Send + use<K>>> {
    let request = RequestBuilder::new(api.resource_url()).watch(params, version);
    Ok(ObjectEvents::new(send(api, request).await?))
}

async fn send<K: Resource + Clone>(
    api: &Api<K>,
    request: Result<Request<Vec<u8>>, kube::core::request::Error>,
) -> kube::Result<impl AsyncBufRead + Unpin + Send + use<K>> {
    let client = api.clone().into_client();
    client
        .request_stream(request.map_err(Error::BuildRequest)?)
        .await
}

/// Reads an object of a list or a watch. The outer error is for what has not even a name.
fn read_object<K: DeserializeOwned>(json: &[u8]) -> kube::Result<Result<K, UnreadableObject>> {
    let error = match read(json) {
        Ok(object) => return Ok(Ok(object)),
        Err(error) => error,
    };
    let (key, version) = ObjectName::of_object(json)?;
    Ok(Err(UnreadableObject {
        key,
        version,
        error,
    }))
}

/// Reads a value; the error names the field.
fn read<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, String> {
    serde_json::from_slice(json).or_else(|_| {
        // The path of a field costs an allocation for each one, so it is found out apart.
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        serde_path_to_error::deserialize(&mut deserializer)
            .map_err(|error| error.to_string().chars().take(SHOWN_OF_ERROR).collect())
    })
}

fn present_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    let _empty: Option<Vec<IgnoredAny>> = Option::deserialize(deserializer)?;
    Ok(())
}

#[cfg(test)]
mod tests;
