//! A Lease on the wire.

use chrono::{DateTime, Utc};
use prober_core::lease::{LeaseList, LeaseRecord};
use serde::Deserialize;

use super::json::{JsonItems, JsonMetadata};
use super::protobuf::{FieldValue, ProtobufError};
use super::{DecodeError, ItemList, check_count, shortened};
use crate::gardener::object::object_or_default;

/// The length of most names of nodes, which are those of machines, in bytes.
const NAME: usize = 64;

impl ItemList for LeaseList {
    const KIND: &'static str = "LeaseList";

    fn count(&self) -> usize {
        self.len()
    }

    fn reserve(&mut self, count: usize) {
        self.reserve(count, count * NAME);
    }

    fn keep_protobuf(&mut self, item: FieldValue<'_>) -> Result<(), DecodeError> {
        self.push(lease(item)?);
        Ok(())
    }

    fn append(&mut self, page: Self) -> Result<(), DecodeError> {
        page.iter().for_each(|lease| self.push(lease));
        Ok(())
    }
}

/// A message that comes twice is merged: fields of a later one win, and those that only an earlier
/// one has stay.
fn lease(value: FieldValue<'_>) -> Result<LeaseRecord<'_>, DecodeError> {
    let (mut name, mut uid, mut duration_seconds, mut stamp) = ("", "", None, None);
    for field in value.message()? {
        match field? {
            (1, metadata) => [name, uid] = metadata.texts([(1, name), (5, uid)])?,
            (2, spec) => {
                for field in spec.message()? {
                    match field? {
                        (2, value) => duration_seconds = Some(value.int32()?),
                        (4, value) => timestamp(value, &mut stamp)?,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let instant = |(seconds, nanos): (i64, i32)| {
        let nanos = u32::try_from(nanos).ok();
        nanos
            .and_then(|nanos| DateTime::from_timestamp(seconds, nanos))
            .ok_or_else(|| DecodeError::RenewTime(shortened(name)))
    };
    Ok(LeaseRecord {
        name,
        uid: uid.into(),
        renew_time: stamp.map(instant).transpose()?,
        duration_seconds,
    })
}

/// Seconds and nanoseconds since 1970. An empty message is how Go writes its zero time, which
/// stands for none.
fn timestamp(value: FieldValue<'_>, stamp: &mut Option<(i64, i32)>) -> Result<(), ProtobufError> {
    for field in value.message()? {
        let (seconds, nanos) = stamp.get_or_insert_default();
        match field? {
            (1, value) => *seconds = value.number()? as i64,
            (2, value) => *nanos = value.int32()?,
            _ => {}
        }
    }
    Ok(())
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct JsonLease<'a> {
    #[serde(borrow, deserialize_with = "object_or_default")]
    metadata: JsonMetadata<'a>,
    #[serde(deserialize_with = "object_or_default")]
    spec: LeaseSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseSpec {
    lease_duration_seconds: Option<i32>,
    renew_time: Option<DateTime<Utc>>,
}

impl<'de> JsonItems<'de> for LeaseList {
    type Item = JsonLease<'de>;

    fn keep(&mut self, JsonLease { metadata, spec }: JsonLease<'de>) -> Result<(), DecodeError> {
        check_count(self.len() + 1)?;
        self.push(LeaseRecord {
            name: &metadata.name,
            uid: (&*metadata.uid).into(),
            renew_time: spec.renew_time,
            duration_seconds: spec.lease_duration_seconds,
        });
        Ok(())
    }
}
