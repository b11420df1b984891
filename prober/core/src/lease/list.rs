//! Leases of one response, in two allocations regardless of their number.

use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::{DateTime, Utc};

/// Hash of `metadata.uid`, which distinguishes a lease from an earlier one of the same name.
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
    /// Name of the lease, and of its node.
    pub name: &'a str,
    pub uid: LeaseUid,
    pub renew_time: Option<DateTime<Utc>>,
    pub duration_seconds: Option<i32>,
}

/// Leases in response order. Their names are concatenated in one string.
#[derive(Clone, Debug, Default)]
pub struct LeaseList {
    names: String,
    entries: Vec<PackedLease>,
}

#[derive(Clone, Copy, Debug)]
struct PackedLease {
    /// End of the name in the string; it starts at the end of the previous one. Responses are far
    /// smaller than 4 GiB.
    name_end: u32,
    uid: LeaseUid,
    renew_time: Option<DateTime<Utc>>,
    duration_seconds: Option<i32>,
}

impl LeaseList {
    /// Reserves room for `count` more leases with `names` bytes of names. Returns the number of
    /// bytes allocated.
    pub fn reserve(&mut self, count: usize, names: usize) -> usize {
        let before = self.allocated();
        self.entries.reserve_exact(count);
        self.names.reserve_exact(names);
        self.allocated() - before
    }

    /// True if a lease of this name fits without another allocation.
    pub fn has_room(&self, name: &str) -> bool {
        self.entries.len() < self.entries.capacity()
            && name.len() <= self.names.capacity() - self.names.len()
    }

    /// Allocated bytes, including reserved ones.
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
