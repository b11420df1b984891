//! A Lease on the wire.

use chrono::{DateTime, Utc};
use prober_core::lease::{LeaseList, LeaseRecord};
use prost::Message;

use super::{DecodeError, ItemList, ProbeStep, shortened};

/// The length of most names of nodes, which are those of machines, in bytes.
const NAME_LENGTH: usize = 64;
/// As many nodes as Kubernetes supports: for more leases there is room when they come.
const MAX_EXPECTED: usize = 5_000;

#[derive(Message)]
pub struct WireLease {
    #[prost(message, required, tag = "1")]
    metadata: LeaseMeta,
    #[prost(message, required, tag = "2")]
    spec: LeaseSpec,
}

#[derive(Message)]
struct LeaseMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "5")]
    uid: String,
}

#[derive(Message)]
struct LeaseSpec {
    #[prost(int32, optional, tag = "2")]
    duration_seconds: Option<i32>,
    #[prost(message, optional, tag = "4")]
    renew_time: Option<WireTime>,
}

#[derive(Message)]
struct WireTime {
    #[prost(int64, optional, tag = "1")]
    seconds: Option<i64>,
    #[prost(int32, optional, tag = "2")]
    nanos: Option<i32>,
}

impl WireLease {
    fn renew_time(&self) -> Result<Option<DateTime<Utc>>, DecodeError> {
        let time = match &self.spec.renew_time {
            // An empty one is how Go writes its zero time, which stands for none.
            None
            | Some(WireTime {
                seconds: None,
                nanos: None,
            }) => return Ok(None),
            Some(time) => time,
        };
        let nanos = u32::try_from(time.nanos()).ok();
        match nanos.and_then(|nanos| DateTime::from_timestamp(time.seconds(), nanos)) {
            None => Err(DecodeError::RenewTime(shortened(&self.metadata.name))),
            instant => Ok(instant),
        }
    }
}

impl ItemList for LeaseList {
    const KIND: &'static str = "LeaseList";
    /// In one page unless the API server wants it otherwise.
    const PATH: &'static str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    const STEP: ProbeStep = ProbeStep::Leases;

    type Item = WireLease;

    fn bytes(&self) -> usize {
        self.allocated()
    }

    fn add(&mut self, lease: &mut WireLease, to_come: usize) -> Result<(), DecodeError> {
        let name = lease.metadata.name.as_str();
        if !self.has_room(name) {
            // A sixteenth more, since leases are not equally long.
            let count = (to_come + to_come / 16).min(MAX_EXPECTED);
            self.reserve(count, (count * NAME_LENGTH).max(name.len()));
        }
        self.push(LeaseRecord {
            name,
            uid: lease.metadata.uid.as_str().into(),
            renew_time: lease.renew_time()?,
            duration_seconds: lease.spec.duration_seconds,
        });
        Ok(())
    }
}
