//! The leases of one answer, in two allocations however many there are.

use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::{DateTime, Utc};

/// Tells a lease from another one that had its name before: a hash of `metadata.uid`, which is all
/// that comparing takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseUid(u64);

impl From<&str> for LeaseUid {
    fn from(uid: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        uid.hash(&mut hasher);
        Self(hasher.finish())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRecord<'a> {
    /// The lease's name, which is its node's.
    pub name: &'a str,
    pub uid: LeaseUid,
    pub renew_time: Option<DateTime<Utc>>,
    pub duration_seconds: Option<i32>,
}

/// Leases in the order in which they came. The names lie one behind the other in a single text.
#[derive(Clone, Debug, Default)]
pub struct LeaseList {
    names: String,
    entries: Vec<PackedLease>,
}

#[derive(Clone, Copy, Debug)]
struct PackedLease {
    /// Where the name ends in the text; it begins where the one before it ends. Names of 4 GiB would
    /// be far too many.
    name_end: u32,
    uid: LeaseUid,
    renew_time: Option<DateTime<Utc>>,
    duration_seconds: Option<i32>,
}

impl LeaseList {
    /// Makes room for `count` more leases, whose names have `names` bytes. Returns how many bytes
    /// that takes.
    pub fn reserve(&mut self, count: usize, names: usize) -> usize {
        let before = self.allocated();
        self.entries.reserve_exact(count);
        self.names.reserve_exact(names);
        self.allocated() - before
    }

    /// True if a lease of this name needs no more memory.
    pub fn has_room(&self, name: &str) -> bool {
        self.entries.len() < self.entries.capacity()
            && name.len() <= self.names.capacity() - self.names.len()
    }

    /// The bytes that the leases take, those included that are there for more.
    pub fn allocated(&self) -> usize {
        self.entries.capacity() * size_of::<PackedLease>() + self.names.capacity()
    }

    pub fn push(&mut self, lease: LeaseRecord<'_>) {
        let LeaseRecord {
            name,
            uid,
            renew_time,
            duration_seconds,
        } = lease;
        self.names.push_str(name);
        self.entries.push(PackedLease {
            name_end: self.names.len() as u32,
            uid,
            renew_time,
            duration_seconds,
        });
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = LeaseRecord<'_>> {
        let mut begin = 0;
        self.entries.iter().map(
            move |&PackedLease {
                      name_end,
                      uid,
                      renew_time,
                      duration_seconds,
                  }| {
                let end = name_end as usize;
                let name = &self.names[std::mem::replace(&mut begin, end)..end];
                LeaseRecord {
                    name,
                    uid,
                    renew_time,
                    duration_seconds,
                }
            },
        )
    }
}
