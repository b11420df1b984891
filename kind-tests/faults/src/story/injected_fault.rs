//! What an API server in memory may do to those who ask it, in words.

use std::fmt::Debug;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use api_server::{Fault, FaultId, MemoryApi, Network, Record, When};
use serde_json::{Value, json};

use crate::shoot::long;

/// One fault to inject.
pub enum InjectedFault {
    /// Some requests are not answered as they should be.
    Answers(When, Fault),
    /// The way to it is another.
    Network(Network),
    /// It is over at once.
    Moment(fn(&MemoryApi)),
}

impl InjectedFault {
    /// `VERB RESOURCE PLACE: FAULT xN`: of some requests N, or what becomes of all.
    pub fn named(words: &str) -> Result<Self> {
        Ok(match words {
            "refused" => Self::Network(Network::Refused),
            "silent" => Self::Network(Network::Silent),
            "cut" => Self::Moment(MemoryApi::cut_connections),
            "watches break" => Self::Moment(|api| api.store().break_watches()),
            "compacted" => Self::Moment(|api| {
                api.store().compact();
                api.store().break_watches();
            }),
            words => {
                let (which, fault) = words.split_once(": ").context("no fault in it")?;
                let (fault, times) = match fault.rsplit_once(" x") {
                    Some((fault, times)) => (fault, number(times)?),
                    None => (fault, u64::MAX),
                };
                Self::Answers(requests(which).times(times), fault_of(fault)?)
            }
        })
    }

    /// `false` if it is over at once.
    pub fn lasts(&self) -> bool {
        !matches!(self, Self::Moment(_))
    }

    /// It begins; of some answers its id.
    pub fn begin(self, api: &MemoryApi) -> Option<FaultId> {
        match self {
            Self::Answers(when, fault) => return Some(api.faults().add(when, fault)),
            Self::Network(network) => api.set_network(network),
            Self::Moment(strike) => strike(api),
        }
        None
    }

    /// It lasts for as long as this takes, if it is not over at once.
    pub async fn during(self, api: &MemoryApi, time: impl Future<Output = ()>) {
        let lasts = self.lasts();
        let begun = self.begin(api);
        if lasts {
            time.await;
            api.set_network(Network::Up);
        }
        if let Some(id) = begun {
            api.faults().remove(id);
        }
    }
}

/// `VERB RESOURCE PLACE`, of which the last ones may be missing: `*` is any, `write` each verb that
/// changes something, `rehearse` a patch that is a dry run, `!` all but this resource, and a place a
/// path or what stands in one.
fn requests(words: &str) -> When {
    let mut words = words.split(' ').map(str::to_owned);
    let [verb, resource, place] = [(); 3].map(|()| words.next().unwrap_or("*".to_owned()));
    let place = long(&place).to_owned();
    When::matches(move |record: &Record| {
        let is_verb = match &*verb {
            "*" => true,
            "write" => record.is_write(),
            "rehearse" => record.is_dry_run(),
            verb => !record.is_dry_run() && verb.split('|').any(|one| one == record.verb),
        };
        let is_of = |name: &str| name == "*" || record.resource.starts_with(name);
        let is_resource = match resource.strip_prefix('!') {
            Some(but) => !is_of(but),
            None => resource.split('|').any(is_of),
        };
        let is_there = match &*place {
            "*" => true,
            path if path.starts_with('/') => record.path == path,
            part => record.path.contains(part),
        };
        is_verb && is_resource && is_there
    })
}

/// The fault that words name.
pub fn fault_of(words: &str) -> Result<Fault> {
    let json = |code, body: Value| Fault::Answer {
        code,
        headers: Vec::new(),
        body: body.to_string().into(),
    };
    Ok(match words.split_once(' ').unwrap_or((words, "")) {
        ("stalls", "") => Fault::Stall,
        ("stalls", _) => Fault::StallAfter,
        ("closes", "") => Fault::CloseBefore,
        ("closes", _) => Fault::CloseAfter,
        ("throttles", time) => Fault::throttle(number(time)?),
        ("delays", time) => Fault::Delay(seconds(time)?),
        ("slow", _) => Fault::Slow {
            bytes: 16,
            pause: Duration::from_millis(200),
        },
        ("truncated", _) => Fault::Truncate,
        ("garbage", _) => Fault::Garbage,
        ("answers", body) => json(200, serde_json::from_str(body)?),
        (code, "") => Fault::status(number(code)?),
        (code, why) => {
            let (code, why) = (number::<u16>(code)?, why.replace("\\n", "\n"));
            let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": why});
            json(code, status)
        }
    })
}

pub fn number<T: FromStr<Err: Debug>>(text: &str) -> Result<T> {
    let read = text.parse();
    read.map_err(|error| anyhow::anyhow!("{text}: {error:?}"))
}

pub fn seconds(text: &str) -> Result<Duration> {
    number(text).map(Duration::from_secs_f64)
}
