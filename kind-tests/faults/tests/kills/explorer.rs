//! Finds out which writes a story takes, and tells it again with a kill at each of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use anyhow::{Context, Result, ensure};
use faults::lock;
use futures::future::join_all;
use testbed::api::{Fault, FaultId, MemoryApi, Record, When};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Lease renewals and Events that are looked at one by one: there are as many as there is time, and one is like the other.
const RENEWALS: u64 = 3;
const EVENTS: u64 = 2;
/// In the long form, KILLS=long, of each of these.
const MANY: u64 = 12;

/// Runs that go on at once, each with a process and two servers: they wait most of the time.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let given = std::env::var("KILLS_AT_ONCE").ok().and_then(|count| count.parse().ok());
    Semaphore::new(given.unwrap_or_else(|| 8 * std::thread::available_parallelism().map_or(1, usize::from)))
});

/// One write of a story.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    verb: String,
    resource: String,
    /// Empty where every run makes names of its own.
    name: String,
    /// How many like it come before.
    before: u64,
    /// Whether it belongs to the orderly end.
    ending: bool,
}

/// When the process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The write has arrived and is never applied.
    Before,
    /// The write is applied and its answer never arrives.
    After,
}

/// A kill to come.
#[derive(Clone, Debug)]
pub struct Kill {
    pub point: Point,
    pub moment: Moment,
}

/// What sorts of writes are one sort, and how many of a sort matter.
fn sort(record: &Record) -> (String, u64) {
    let long = std::env::var("KILLS").is_ok_and(|form| form == "long");
    let most = |usual| if long { MANY } else { usual };
    match record.resource.as_str() {
        "events" => (String::new(), most(EVENTS)),
        "leases.coordination.k8s.io" if record.verb == "update" => (record.name.clone(), most(RENEWALS)),
        _ => (record.name.clone(), u64::MAX),
    }
}

impl fmt::Display for Point {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, resource, name, before, ending } = self;
        write!(out, "{verb} {resource} {name} #{}{}", before + 1, if *ending { " at the end" } else { "" })
    }
}

impl Point {
    pub fn is_at_the_end(&self) -> bool {
        self.ending
    }

    /// Whether it is a write to a dependent.
    pub fn scales(&self) -> bool {
        self.verb == "patch" && self.resource != "events"
    }
}

impl Kill {
    pub fn is_at_the_end(&self) -> bool {
        self.point.ending
    }

    /// Sets the trap, for a story whose orderly end has begun when `ending` says so. What is held up before it is applied never goes on,
    /// or when `late` is cancelled.
    pub fn prepare(&self, seed: &MemoryApi, ending: &Arc<AtomicBool>, late: Option<&CancellationToken>) -> Trap {
        let (wanted, ending) = (self.point.clone(), Arc::clone(ending));
        let user = Arc::new(Mutex::new(String::new()));
        let sender = Arc::clone(&user);
        let at_the_end = wanted.ending;
        let is_it = move |record: &Record| {
            let it = record.is_write()
                && record.verb == wanted.verb
                && record.resource == wanted.resource
                && sort(record).0 == wanted.name
                && (!at_the_end || ending.load(Ordering::Relaxed));
            if it {
                lock(&sender).clone_from(&record.user);
            }
            it
        };
        let fault = match (self.moment, late) {
            (Moment::Before, None) => Fault::Stall,
            (Moment::Before, Some(late)) => Fault::Hold(late.clone()),
            (Moment::After, _) => Fault::StallAfter,
        };
        Trap { id: seed.faults().add(When::matches(is_it).after(self.point.before).once(), fault), user }
    }
}

/// Where a process is awaited to be killed.
pub struct Trap {
    id: FaultId,
    /// Whose request was the last that is of the sort; when it has sprung, the fatal one.
    user: Arc<Mutex<String>>,
}

impl Trap {
    /// Waits until the fatal write is there; who sent it.
    pub async fn sprung(&self, seed: &MemoryApi) -> String {
        seed.faults().met(self.id, 1).await;
        lock(&self.user).clone()
    }
}

/// The writes of a story that has been told without a kill; `ended` is how many requests there were when its end began.
pub fn points(seed: &MemoryApi, ended: u64) -> Vec<Point> {
    let mut counts = BTreeMap::new();
    let mut points = Vec::new();
    for record in seed.requests().all().iter().filter(|record| record.is_write()) {
        let (name, most) = sort(record);
        let ending = record.number >= ended && record.resource.starts_with("leases");
        let (verb, resource) = (record.verb.clone(), record.resource.clone());
        let count = counts.entry((verb.clone(), resource.clone(), name.clone(), ending)).or_default();
        if *count < most {
            points.push(Point { verb, resource, name, before: *count, ending });
        }
        *count += 1;
    }
    points
}

/// What a story that came to its end was like.
pub struct Told {
    /// Its writes.
    pub points: Vec<Point>,
    /// Whether a process was killed as planned. The writes of two runs are not always the same: a conflict takes one more.
    pub killed: bool,
}

/// Tells a story without a kill, which yields its writes, and then once for each kill. At least `least` of them must come about.
pub async fn explore<F>(what: &str, least: usize, story: impl Fn(Option<Kill>) -> F) -> Result<()>
where
    F: Future<Output = Result<Told>>,
{
    let begin = Instant::now();
    let turn = TURNS.acquire().await?;
    let points = story(None).await.with_context(|| format!("{what}, without a kill"))?.points;
    drop(turn);
    let kills: Vec<Kill> = points
        .iter()
        .flat_map(|point| [Moment::Before, Moment::After].map(|moment| Kill { point: point.clone(), moment }))
        .collect();
    let told: Vec<String> = points.iter().map(Point::to_string).collect();
    println!("{what}: killed before and after each of {} writes: {}", points.len(), told.join(", "));
    let runs = kills.into_iter().map(async |kill| {
        let _turn = TURNS.acquire().await?;
        let begin = Instant::now();
        let told = story(Some(kill.clone())).await.with_context(|| format!("{what}, killed {:?} {}", kill.moment, kill.point))?;
        anyhow::Ok((told.killed, begin.elapsed()))
    });
    let runs = join_all(runs).await;
    let killed = runs.iter().filter(|run| matches!(run, Ok((true, _)))).count();
    let longest = runs.iter().flatten().map(|(_, took)| *took).max().unwrap_or_default();
    let failed: Vec<String> = runs.iter().filter_map(|run| Some(format!("{:#}", run.as_ref().err()?))).collect();
    println!(
        "{what}: {killed} kill points explored in {:.0?}, the longest run took {longest:.0?}; {} failed",
        begin.elapsed(),
        failed.len()
    );
    ensure!(failed.is_empty(), "{}", failed.join("\n\n"));
    ensure!(killed >= least, "{what}: {killed} kills instead of {least}");
    Ok(())
}
