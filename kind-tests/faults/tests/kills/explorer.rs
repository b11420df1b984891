//! Finds out which writes a story takes, and tells it again with a kill at each of them.

use std::sync::LazyLock;

use anyhow::{Context, Result, ensure};
use api_server::{MemoryApi, Record};
use futures::future::join_all;
use testbed::tolerating_stalls;
use tokio::sync::Semaphore;

use crate::replicas::LEASES;

/// Lease renewals and Events that are looked at one by one: there are as many as there is time, and
/// one is like the other.
const RENEWALS: u64 = 3;
const EVENTS: u64 = 2;
/// In the long form, KILLS=long, of each of these.
const MANY: u64 = 12;

/// Runs that go on at once, each with a process and two servers: they wait most of the time.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    Semaphore::new(8 * std::thread::available_parallelism().map_or(1, usize::from))
});

/// One write of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    verb: String,
    resource: String,
    /// Empty where every run makes names of its own.
    name: String,
    /// How many like it come before.
    pub before: u64,
}

/// A kill to come: when the write has arrived and is never applied, or when it is applied and its
/// answer never arrives.
#[derive(Clone, Debug)]
pub struct Kill {
    pub point: Point,
    pub applied: bool,
}

impl Point {
    /// The first of its sort.
    pub fn of(record: &Record) -> Self {
        let name = match record.resource.as_str() {
            "events" => String::new(),
            _ => record.name.clone(),
        };
        Self {
            verb: record.verb.clone(),
            resource: record.resource.clone(),
            name,
            before: 0,
        }
    }

    /// How many of its sort matter.
    fn most(&self) -> u64 {
        let usual = match (self.resource.as_str(), self.verb.as_str()) {
            ("events", _) => EVENTS,
            (LEASES, "update") => RENEWALS,
            _ => return u64::MAX,
        };
        let is_long = std::env::var("KILLS").is_ok_and(|form| form == "long");
        if is_long { MANY } else { usual }
    }

    /// Whether it scales something.
    pub fn scales(&self) -> bool {
        self.verb == "patch" && self.resource != "events"
    }
}

/// The writes of a story, but those of its end, which began after so many requests.
pub fn points(seed: &MemoryApi, ended: u64) -> Vec<Point> {
    let mut points = Vec::new();
    let written = seed.requests().all().into_iter();
    for record in written.filter(|record| record.is_write() && record.number < ended) {
        let mut point = Point::of(&record);
        while points.contains(&point) {
            point.before += 1;
        }
        if point.before < point.most() {
            points.push(point);
        }
    }
    points
}

/// What a story that came to its end was like.
pub struct Told {
    /// Its writes.
    pub points: Vec<Point>,
    /// Whether a process was killed as planned. The writes of two runs are not always the same: a
    /// conflict takes one more.
    pub killed: bool,
}

/// Tells a story without a kill, which yields its writes, and then once for each kill. At least
/// `least` of them must come about.
pub async fn explore<F>(what: &str, least: usize, story: impl Fn(Option<Kill>) -> F) -> Result<()>
where
    F: Future<Output = Result<Told>>,
{
    let tell = async |kill: Option<Kill>| {
        let _turn = TURNS.acquire().await?;
        tolerating_stalls(async || story(kill.clone()).await)
            .await
            .with_context(|| format!("{what}: {kill:?}"))
    };
    let points = tell(None).await?.points;
    println!(
        "{what}: killed before and after each of {} writes: {points:?}",
        points.len()
    );
    let kills = points.iter().flat_map(|point| {
        [false, true].map(|applied| Kill {
            point: point.clone(),
            applied,
        })
    });
    let runs = join_all(kills.map(|kill| tell(Some(kill)))).await;
    let (mut killed, mut failed) = (0, Vec::new());
    for run in runs {
        match run {
            Ok(told) => killed += usize::from(told.killed),
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    println!(
        "{what}: {killed} kill points explored, {} failed",
        failed.len()
    );
    ensure!(failed.is_empty(), "{}", failed.join("\n\n"));
    ensure!(killed >= least, "{what}: {killed} kills instead of {least}");
    Ok(())
}
