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
    pub verb: String,
    pub resource: String,
    /// Empty where every run makes names of its own.
    pub name: String,
    /// How many like it come before.
    pub before: u64,
    /// Whether it belongs to the orderly end.
    pub at_the_end: bool,
}

/// A kill to come: when the write has arrived and is never applied, or when it is applied and its
/// answer never arrives.
#[derive(Clone, Debug)]
pub struct Kill {
    pub point: Point,
    pub applied: bool,
}

impl Point {
    /// The first of its sort; and how many of a sort matter.
    pub fn of(record: &Record, ended: bool) -> (Self, u64) {
        let long = std::env::var("KILLS").is_ok_and(|form| form == "long");
        let most = |usual| if long { MANY } else { usual };
        let (name, most) = match record.resource.as_str() {
            "events" => ("", most(EVENTS)),
            LEASES if record.verb == "update" => (record.name.as_str(), most(RENEWALS)),
            _ => (record.name.as_str(), u64::MAX),
        };
        let (verb, resource) = (record.verb.clone(), record.resource.clone());
        let at_the_end = ended && resource == LEASES;
        (
            Self {
                verb,
                resource,
                name: name.to_owned(),
                before: 0,
                at_the_end,
            },
            most,
        )
    }
}

/// The writes of a story that has run without a kill; `ended` is how many requests there were when
/// its end began.
pub fn points(seed: &MemoryApi, ended: u64) -> Vec<Point> {
    let mut points = Vec::new();
    for record in seed
        .requests()
        .all()
        .iter()
        .filter(|record| record.is_write())
    {
        let (mut point, most) = Point::of(record, record.number >= ended);
        while points.contains(&point) {
            point.before += 1;
        }
        if point.before < most {
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
    let killed = runs
        .iter()
        .filter(|run| matches!(run, Ok(Told { killed: true, .. })))
        .count();
    let failed: Vec<String> = runs
        .iter()
        .filter_map(|run| Some(format!("{:#}", run.as_ref().err()?)))
        .collect();
    println!(
        "{what}: {killed} kill points explored, {} failed",
        failed.len()
    );
    ensure!(failed.is_empty(), "{}", failed.join("\n\n"));
    ensure!(killed >= least, "{what}: {killed} kills instead of {least}");
    Ok(())
}
