//! The events of a watch, one line each.

use std::io::{Error as IoError, ErrorKind};
use std::marker::PhantomData;

use futures::{AsyncBufRead, AsyncBufReadExt};
use kube::core::Status;
use kube::{Error, Resource, ResourceExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::framing::Pieces;
use super::{ObjectName, UnreadableObject, read_object};
use crate::change::Key;
use crate::transport::causes;

pub(crate) enum ObjectEvent<K> {
    Applied(Result<K, UnreadableObject>),
    Deleted(Key, Option<String>),
    /// Nothing but a version.
    Bookmark(Option<String>),
}

impl<K: Resource> ObjectEvent<K> {
    /// Version that a watch continues from.
    pub(crate) fn version(&self) -> Option<String> {
        match self {
            Self::Applied(Ok(object)) => object.resource_version(),
            Self::Applied(Err(UnreadableObject { version, .. }))
            | Self::Deleted(_, version)
            | Self::Bookmark(version) => version.clone(),
        }
    }
}

/// A watch that is open.
pub(crate) struct ObjectEvents<K, B> {
    body: B,
    line: Pieces,
    object: PhantomData<fn() -> K>,
}

/// An event as it is sent. Which of its fields comes first is no matter.
#[derive(Deserialize)]
struct EventLine<'a> {
    #[serde(rename = "type")]
    kind: EventKindName,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum EventKindName {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

impl<K, B> ObjectEvents<K, B>
where
    K: Resource + DeserializeOwned,
    B: AsyncBufRead + Unpin,
{
    pub(super) fn new(body: B) -> Self {
        Self {
            body,
            line: Pieces::default(),
            object: PhantomData,
        }
    }

    /// Returns the next event, or `None` when the watch has ended. What was received of an event is
    /// kept if this is dropped.
    pub(crate) async fn next(&mut self) -> kube::Result<Option<ObjectEvent<K>>> {
        loop {
            let piece = match self.body.fill_buf().await {
                Ok([]) => return self.last(),
                Ok(piece) => piece,
                Err(error) if is_cut_off(&error) => return self.last(),
                Err(error) => return Err(Error::ReadEvents(error)),
            };
            let end = piece.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(piece.len(), |end| end + 1);
            self.line.push(&piece[..length])?;
            self.body.consume_unpin(length);
            if end.is_some() {
                let event = event(self.line.joined());
                self.line.clear();
                return event.map(Some);
            }
        }
    }

    /// Returns the event after the last line; `None` if it was cut off.
    fn last(&mut self) -> kube::Result<Option<ObjectEvent<K>>> {
        let event = event(self.line.joined());
        self.line.clear();
        match event {
            Err(Error::SerdeError(error)) if error.is_eof() => Ok(None),
            event => event.map(Some),
        }
    }
}

fn event<K: DeserializeOwned>(line: &[u8]) -> kube::Result<ObjectEvent<K>> {
    let EventLine { kind, object } = serde_json::from_slice(line).map_err(Error::SerdeError)?;
    let object = object.get().as_bytes();
    Ok(match kind {
        EventKindName::Added | EventKindName::Modified => {
            ObjectEvent::Applied(read_object(object)?)
        }
        EventKindName::Deleted => {
            let (key, version) = ObjectName::of_object(object)?;
            ObjectEvent::Deleted(key, version)
        }
        EventKindName::Bookmark => ObjectEvent::Bookmark(ObjectName::read(object)?.1),
        EventKindName::Error => {
            let status: Status = serde_json::from_slice(object).map_err(Error::SerdeError)?;
            return Err(Error::Api(status.boxed()));
        }
    })
}

/// True if a connection ended in the middle of a body, as those do that last long.
fn is_cut_off(error: &IoError) -> bool {
    let is_end = |error: &IoError| error.kind() == ErrorKind::UnexpectedEof;
    causes(error).any(|cause| cause.downcast_ref().is_some_and(is_end))
}
