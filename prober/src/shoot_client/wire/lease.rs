//! A Lease on the wire.

use chrono::DateTime;
use prober_core::lease::{LeaseList, LeaseRecord, LeaseUid};

use super::protobuf::{FieldSchema, MessageSchema, message};
use super::{DecodeError, ItemFields, ItemList, ListField, ListRoom, shortened};

/// The length of most names of nodes, which are those of machines, in bytes.
const NAME_LENGTH: usize = 64;

static LEASE: [FieldSchema; 3] = message(&[
    (1, FieldSchema::Message(ListField::Metadata, &METADATA)),
    (2, FieldSchema::Message(ListField::Spec, &SPEC)),
]);
static METADATA: [FieldSchema; 6] = message(&[
    (1, FieldSchema::Text(ListField::Name)),
    (5, FieldSchema::Text(ListField::Uid)),
]);
static SPEC: [FieldSchema; 5] = message(&[
    (2, FieldSchema::Number(ListField::Duration)),
    (4, FieldSchema::Message(ListField::RenewTime, &MICRO_TIME)),
]);
static MICRO_TIME: [FieldSchema; 3] = message(&[
    (1, FieldSchema::Number(ListField::Seconds)),
    (2, FieldSchema::Number(ListField::Nanos)),
]);

/// Relevant fields of a lease, as far as received.
#[derive(Default)]
pub struct LeaseFields {
    name: String,
    uid: LeaseUid,
    duration_seconds: Option<i32>,
    /// Seconds and nanoseconds since 1970.
    renewed: Option<(i64, i32)>,
}

impl ItemFields for LeaseFields {
    /// An empty time is how Go writes its zero time, which stands for none.
    #[inline(always)]
    fn begin(&mut self, field: ListField, length: usize) {
        if field == ListField::RenewTime && length > 0 {
            self.renewed.get_or_insert_default();
        }
    }

    /// Negative numbers come with all 64 bits; of those with 32 what is above does not count.
    #[inline(always)]
    fn number(&mut self, field: ListField, number: u64) {
        match field {
            ListField::Duration => self.duration_seconds = Some(number as i32),
            ListField::Seconds => self.renewed.get_or_insert_default().0 = number as i64,
            ListField::Nanos => self.renewed.get_or_insert_default().1 = number as i32,
            _ => {}
        }
    }

    #[inline(always)]
    fn text(&mut self, field: ListField, text: &str) {
        match field {
            ListField::Name => text.clone_into(&mut self.name),
            ListField::Uid => self.uid = text.into(),
            _ => {}
        }
    }
}

impl LeaseFields {
    fn record(&self) -> Result<LeaseRecord<'_>, DecodeError> {
        let instant = |(seconds, nanos): (i64, i32)| {
            let nanos = u32::try_from(nanos).ok();
            nanos
                .and_then(|nanos| DateTime::from_timestamp(seconds, nanos))
                .ok_or_else(|| DecodeError::RenewTime(shortened(&self.name)))
        };
        Ok(LeaseRecord {
            name: &self.name,
            uid: self.uid,
            renew_time: self.renewed.map(instant).transpose()?,
            duration_seconds: self.duration_seconds,
        })
    }

    /// Is ready for the next lease.
    fn clear(&mut self) {
        self.name.clear();
        *self = Self {
            name: std::mem::take(&mut self.name),
            ..Self::default()
        };
    }
}

impl ItemList for LeaseList {
    const KIND: &'static str = "LeaseList";

    const ITEM: MessageSchema = &LEASE;

    type Item = LeaseFields;

    fn count(&self) -> usize {
        self.len()
    }

    fn kept(&self) -> usize {
        self.allocated()
    }

    /// A sixteenth more, since nodes come and names do not stay equally long.
    fn expect(&mut self, count: usize, room: &ListRoom) -> Result<(), DecodeError> {
        let count = count + count / 16;
        room.take(self.reserve(count, count * NAME_LENGTH))
    }

    fn keep(&mut self, item: &mut LeaseFields, room: &ListRoom) -> Result<(), DecodeError> {
        let lease = item.record()?;
        if !self.has_room(lease.name) {
            // By a sixteenth, so that two attempts at 5,000 fit.
            let count = (self.len() / 16).max(64);
            let names = (count * NAME_LENGTH).max(lease.name.len());
            room.take(self.reserve(count, names))?;
        }
        self.push(lease);
        item.clear();
        Ok(())
    }

    fn append(&mut self, page: Self) {
        page.iter().for_each(|lease| self.push(lease));
    }
}
