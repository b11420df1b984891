//! What an API server in memory may do to those who ask it, in words.

use std::fmt::Debug;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use api_server::{Fault, FaultId, MemoryApi, Network, Record, When};
use serde_json::{Value, json};

use crate::shoot::long;

/// A fault begins: `VERB RESOURCE PLACE: FAULT xN` of some requests N, or what becomes of all. Of some
/// requests its id.
pub fn begin(api: &MemoryApi, words: &str) -> Result<Option<FaultId>> {
    match words {
        "refused" => api.set_network(Network::Refused),
        "silent" => api.set_network(Network::Silent),
        "cut" => api.cut_connections(),
        "watches break" => api.store().break_watches(),
        "compacted" => {
            api.store().compact();
            api.store().break_watches();
        }
        words => {
            let (which, fault) = words.split_once(": ").context("no fault in it")?;
            let (fault, times) = match fault.rsplit_once(" x") {
                Some((fault, times)) => (fault, number(times)?),
                None => (fault, u64::MAX),
            };
            let when = When::matches(requests(which)).times(times);
            return Ok(Some(api.faults().add(when, fault_of(fault)?)));
        }
    }
    Ok(None)
}

/// All faults end.
pub fn end(api: &MemoryApi) {
    api.faults().clear();
    api.set_network(Network::Up);
}

/// `VERB RESOURCE PLACE`, of which the last ones may be missing: `*` is any, `write` each verb that
/// changes something, `rehearse` a patch that is a dry run, a number the status of the answer, `!` all
/// but this resource, and a place a path or what stands in one.
pub fn requests(words: &str) -> impl Fn(&Record) -> bool + Send + Sync + 'static {
    let mut words = words.split(' ').map(str::to_owned);
    let [verb, resource, place] = [(); 3].map(|()| words.next().unwrap_or("*".to_owned()));
    let (status, place) = (verb.parse().ok(), long(&place).to_owned());
    move |record| {
        let is_verb = match &*verb {
            "*" => true,
            "write" => record.is_write(),
            "rehearse" => record.is_dry_run(),
            _ if status.is_some() => record.status == status,
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
    }
}

fn fault_of(words: &str) -> Result<Fault> {
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
