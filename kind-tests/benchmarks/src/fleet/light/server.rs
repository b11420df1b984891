//! The process that serves light shoots. It ends when its standard input does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use testbed::api::{Authority, MemoryApi, Options};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::answer::Answers;
use super::{Counts, Opened, Order, Plan};
use crate::fleet::TOKEN;
use crate::fleet::heart::{Heart, Micros, SECOND, now};

/// What is known of a shoot beside its server.
struct Shoot {
    heart: Mutex<Heart>,
    /// Requests for leases.
    leases: AtomicU64,
    /// When the prober's schedule wants the next one.
    due: Mutex<Option<Micros>>,
}

/// What all shoots share.
struct World {
    plan: Plan,
    answers: Answers,
    shoots: Vec<Shoot>,
    late: Mutex<Vec<f64>>,
}

/// Serves until standard input ends.
pub fn serve(plan: Plan) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(plan))
}

async fn run(plan: Plan) -> Result<()> {
    let shoot = |number| Shoot { heart: Mutex::new(plan.heart(number)), leases: AtomicU64::new(0), due: Mutex::default() };
    let world = Arc::new(World {
        answers: Answers::new(plan.nodes, plan.grace),
        shoots: (0..plan.shoots).map(shoot).collect(),
        late: Mutex::default(),
        plan,
    });
    let authority = Authority::new()?;
    let mut servers = Vec::with_capacity(world.shoots.len());
    for number in 0..world.shoots.len() {
        let options = Options { history: 1, requests_kept: 1, admin_token: TOKEN.into(), ..Options::default() };
        let server = MemoryApi::start(&authority, options).await?;
        let (leases, nodes) = (world.clone(), world.clone());
        server.computed().set("leases.coordination.k8s.io", move || leases.leases(number));
        server.computed().set("nodes", move || nodes.answers.nodes());
        servers.push(server);
    }
    let mut output = tokio::io::stdout();
    let mut say = async |line: String| {
        output.write_all((line + "\n").as_bytes()).await?;
        output.flush().await
    };
    let ports = servers.iter().map(|server| server.address().port()).collect();
    say(serde_json::to_string(&Opened { authority: authority.pem(), ports })?).await?;
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = orders.next_line().await? {
        say(world.obey(&servers, serde_json::from_str(&line)?)?).await?;
    }
    Ok(())
}

impl World {
    fn obey(&self, servers: &[MemoryApi], order: Order) -> Result<String> {
        match order {
            Order::Cut { from, moments } => {
                for (shoot, at) in self.shoots[from..].iter().zip(moments) {
                    lock(&shoot.heart).cut(at);
                }
                Ok("{}".into())
            }
            Order::Heal { from, to, at } => {
                self.shoots[from..to].iter().for_each(|shoot| lock(&shoot.heart).heal(at));
                Ok("{}".into())
            }
            Order::Count => {
                let counts = self.shoots.iter().zip(servers).map(|(shoot, server)| Counts {
                    leases: shoot.leases.load(Ordering::Relaxed),
                    requests: server.requests().total(),
                    connections: server.connections().handshakes,
                    bytes: server.requests().bytes(),
                });
                Ok(serde_json::to_string(&counts.collect::<Vec<_>>())?)
            }
            Order::Lateness => Ok(serde_json::to_string(&std::mem::take(&mut *lock(&self.late)))?),
        }
    }

    /// The leases as they are now.
    fn leases(&self, number: usize) -> Vec<bytes::Bytes> {
        let (shoot, now) = (&self.shoots[number], now());
        let heart = lock(&shoot.heart).clone();
        shoot.leases.fetch_add(1, Ordering::Relaxed);
        self.note_lateness(shoot, &heart, now);
        self.answers.leases(heart.renewed(now))
    }

    /// The prober looks again before the verdict can fall, and before a renewal could be doubted: three quarters of the grace
    /// period less a beat and a second after it last looked, or when two of the leases that it saw expire, whichever is earlier.
    fn note_lateness(&self, shoot: &Shoot, heart: &Heart, now: Micros) {
        let (grace, beat) = (self.plan.grace(), self.plan.grace() / 4);
        let next = heart.expiry(now, 2, grace).min(now + grace * 3 / 4 - beat - SECOND);
        if let Some(due) = lock(&shoot.due).replace(next) {
            lock(&self.late).push((now - due) as f64 / SECOND as f64);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
