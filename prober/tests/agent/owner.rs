//! The owner record, asked of a real DNS server on loopback: what it says, fails to say, and what
//! follows.

use std::time::Duration;

use serde_json::{Value, json};
use testbed::PATIENCE;
use testbed::dns::{Dns, Reply};
use tokio::time::{Instant, timeout};

use super::operations::Served;
use super::world::{CA, CONFIG, KCM, MCM, NAMESPACE, ProberWorld, at, held};

const ALL_HELD: [&str; 3] = ["1", "1", "1"];

pub fn config(dns: &Dns, more: &str) -> String {
    config_with(&[dns], more)
}

fn config_with(servers: &[&Dns], more: &str) -> String {
    let name = "owner.{{domain}}";
    let servers: Vec<String> = servers
        .iter()
        .map(|dns| format!("'{}'", dns.address()))
        .collect();
    let servers = servers.join(", ");
    let check = format!(
        "name: '{name}', value: '{{{{seed}}}}', servers: [{servers}], interval: 1s, timeout: 300ms"
    );
    format!("{CONFIG}ownerCheck: {{{check}, {more}}}\n")
}

/// Far longer than a test takes.
const PATIENT: &str = "tolerance: 1h";
pub const IMPATIENT: &str = "tolerance: 2s";
const TOLERANCE: Duration = Duration::from_secs(2);

/// The seed `here`, with the shoot's internal domain.
fn placed(world: ProberWorld) -> ProberWorld {
    let clusters = "clusters.extensions.gardener.cloud";
    let place = |cluster: &mut Value| {
        cluster["spec"]["seed"] = json!({"metadata": {"name": "here", "uid": "an-id"}});
        let internal = json!({"name": "internal", "url": "https://api.s.p.internal.example.org"});
        cluster["spec"]["shoot"]["status"]["advertisedAddresses"] = json!([internal]);
    };
    world
        .seed
        .store()
        .update(clusters, "", NAMESPACE, place)
        .expect("changed");
    world
}

async fn world() -> ProberWorld {
    placed(ProberWorld::new().await)
}

pub async fn dns(reply: Reply) -> Dns {
    Dns::start(reply).await.expect("a DNS server")
}

/// A prober that checks a record and has probed, if it does at all.
async fn served(dns: &Dns, more: &str) -> Served {
    Served::serve_with(world().await, &config(dns, more), &[]).await
}

async fn ownership(served: &Served) -> (u16, String) {
    served
        .get(&format!("{}/ownership/{NAMESPACE}", served.health), "*/*")
        .await
}

async fn until_owner(served: &Served, status: u16, text: &str) {
    let reached = async {
        loop {
            let (found, body) = ownership(served).await;
            if found == status && body.contains(text) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let reached = timeout(PATIENCE, reached).await;
    assert!(
        reached.is_ok(),
        "no {status} {text:?} but {:?}",
        ownership(served).await
    );
}

/// Right after a good answer: the next check begins most of a second later.
async fn until_checked(served: &Served) {
    let ours = "dwd_owner_checks_total{result=\"ours\"}";
    let before = served.metric(ours).await;
    served.until_metric(ours, |count| count > before).await;
}

async fn all_held(world: &ProberWorld) {
    world.until(ALL_HELD.map(held)).await;
}

async fn all_up(world: &ProberWorld) {
    world.until([at(1), at(1), at(1)]).await;
}

fn dependents(world: &ProberWorld) -> [super::world::DependentReplicas; 3] {
    [KCM, MCM, CA].map(|name| world.dependent(name))
}

#[tokio::test]
async fn of_several_servers_the_one_that_resolves_the_record_counts() {
    let (broken, silent, good) = (
        dns(Reply::Failure).await,
        dns(Reply::Silence).await,
        dns(Reply::text("here")).await,
    );
    let config = config_with(&[&broken, &silent, &good], PATIENT);
    let served = Served::serve_with(world().await, &config, &[]).await;
    until_owner(&served, 200, "ours").await;
    for dns in [&broken, &silent, &good] {
        dns.queries(3).await;
    }
    let (_, body) = ownership(&served).await;
    assert!(body.starts_with("ours"), "{body}");
    assert_eq!(
        served
            .metric("dwd_owner_checks_total{result=\"ours\"}")
            .await
            .min(2.0),
        2.0
    );
    served.world.end().await;
}

#[tokio::test]
async fn a_record_that_changes_in_mid_outage_ends_all_writing_until_it_is_ours_again() {
    let dns = dns(Reply::text("here")).await;
    let served = served(&dns, PATIENT).await;
    served.world.probes(3).await;
    served.world.nodes.cut_all();
    all_held(&served.world).await;
    dns.say(Reply::text("there"));
    until_owner(&served, 503, "says \"there\", not \"here\"").await;
    served.world.event("OwnedElsewhere", "there").await;
    served.world.nodes.heal_all();
    let (probed, written) = (
        served.world.shoot.requests().all().len(),
        served.world.written().len(),
    );
    dns.queries(4).await;
    assert_eq!(
        dependents(&served.world),
        ALL_HELD.map(held),
        "annotations stay"
    );
    assert_eq!(served.world.written().len(), written);
    // One request may have been under way.
    assert!(
        served.world.shoot.requests().all().len() <= probed + 1,
        "it is not probed"
    );
    assert_eq!(
        served
            .metric("dwd_owner_shoots{standing=\"elsewhere\"}")
            .await,
        1.0
    );
    let (_, body) = served
        .get(&format!("{}/statusz.json", served.health), "*/*")
        .await;
    let status: Value = serde_json::from_str(&body).expect("JSON");
    let owner = &status["shoots"][0]["owner"];
    assert_eq!(
        (&owner["standing"], &owner["elsewhere"]),
        (&json!("elsewhere"), &json!("there")),
        "{owner}"
    );
    assert_eq!(
        status["outages"][0]["end"], "still_held_down",
        "{}",
        status["outages"]
    );
    let (_, page) = served
        .get(&format!("{}/", served.health), "text/html")
        .await;
    assert!(
        page.contains("the prober neither probes nor writes it"),
        "{page}"
    );

    dns.say(Reply::text("here"));
    all_up(&served.world).await;
    served.world.event("OwnedAgain", "here").await;
    until_owner(&served, 200, "ours").await;
    served.world.end().await;
}

async fn cannot_be_resolved(reply: Reply, result: &str) {
    let dns = dns(Reply::text("here")).await;
    let served = served(&dns, IMPATIENT).await;
    until_owner(&served, 200, "says").await;
    served.world.probes(3).await;
    // The last good answer comes after this moment.
    let since = Instant::now();
    until_checked(&served).await;
    dns.say(reply.clone());
    until_owner(&served, 503, "unresolved").await;
    assert!(since.elapsed() >= TOLERANCE, "{reply:?} is tolerated");
    assert!(
        served
            .metric(&format!("dwd_owner_checks_total{{result=\"{result}\"}}"))
            .await
            >= 1.0,
        "{reply:?}"
    );
    served
        .world
        .event("OwnerUnresolved", "cannot be resolved")
        .await;
    served.world.nodes.cut_all();
    dns.queries(4).await;
    assert_eq!(served.world.written(), Vec::<String>::new(), "{reply:?}");
    dns.say(Reply::text("here"));
    all_held(&served.world).await;
    served.world.end().await;
}

#[tokio::test]
async fn what_cannot_be_resolved_is_tolerated_and_then_ends_all_writing() {
    let differ = Reply::Text(vec![vec!["here".into()], vec!["there".into()]]);
    let cases = [
        (Reply::NoName, "no_name"),
        (Reply::NoRecord, "no_record"),
        (Reply::Address, "no_record"),
        (Reply::Failure, "server"),
        (Reply::Refused, "refused"),
        (Reply::Silence, "timeout"),
        (Reply::CutOffAlways, "truncated"),
        (differ, "ambiguous"),
    ];
    futures::future::join_all(cases.map(|(reply, result)| cannot_be_resolved(reply, result))).await;
}

#[tokio::test]
async fn strings_are_put_together_and_a_cut_off_answer_is_asked_for_over_tcp() {
    let strings = |value: &[&str]| vec![value.iter().map(ToString::to_string).collect::<Vec<_>>()];
    for reply in [
        Reply::Text(strings(&["he", "re"])),
        Reply::Text([strings(&["here"]), strings(&["h", "ere"])].concat()),
        Reply::CutOff(strings(&["here"])),
    ] {
        let dns = dns(reply).await;
        let served = served(&dns, PATIENT).await;
        until_owner(&served, 200, "says \"here\"").await;
        served.world.end().await;
    }
}

#[tokio::test]
async fn what_is_known_to_belong_elsewhere_is_passivated_and_comes_back() {
    let dns = dns(Reply::text("there")).await;
    let served = served(&dns, &format!("{PATIENT}, onLoss: passivate")).await;
    all_held(&served.world).await;
    assert_eq!(
        served.world.written().last().map(String::as_str),
        Some(KCM),
        "in the order of a scale-down"
    );
    served
        .world
        .event("ScaledDown", "belongs to another seed")
        .await;
    assert_eq!(
        served
            .metric("dwd_held_down_shoots{verdict=\"unknown\"}")
            .await,
        0.0,
        "this is no protection"
    );
    dns.say(Reply::text("here"));
    all_up(&served.world).await;
    served.world.end().await;
}

#[tokio::test]
async fn the_section_is_applied_while_the_prober_runs() {
    let dns = dns(Reply::text("there")).await;
    let served = Served::serve(world().await, &[]).await;
    let (status, text) = ownership(&served).await;
    assert!(
        status == 404 && text.contains("no ownerCheck"),
        "{status} {text}"
    );
    served.world.probes(3).await;
    served.world.write_config(&config(&dns, PATIENT));
    until_owner(&served, 503, "elsewhere").await;
    let (status, _) = served
        .get(
            &format!("{}/ownership/shoot--none--such", served.health),
            "*/*",
        )
        .await;
    assert_eq!(status, 404);
    served.world.nodes.cut_all();
    dns.queries(4).await;
    assert_eq!(served.world.written(), Vec::<String>::new());
    served.world.write_config(CONFIG);
    all_held(&served.world).await;
    until_owner(&served, 404, "no ownerCheck").await;
    served.world.end().await;
}

#[tokio::test]
async fn without_a_domain_in_the_cluster_nothing_is_asked_and_nothing_is_known() {
    let dns = dns(Reply::text("here")).await;
    let served = Served::serve_with(ProberWorld::new().await, &config(&dns, IMPATIENT), &[]).await;
    until_owner(&served, 503, "the Cluster does not say").await;
    assert_eq!(dns.asked(), Vec::<String>::new());
    served.world.end().await;
}

#[tokio::test]
async fn a_prober_that_returns_beside_others_that_race_writes_nothing_before_it_has_checked() {
    let dns = dns(Reply::text("there")).await;
    let mut world = world().await;
    for name in [KCM, MCM, CA] {
        world.hold_down(name, "1");
    }
    world.start(&config(&dns, PATIENT));
    dns.queries(4).await;
    world.stop().await;
    assert_eq!(
        (dependents(&world), world.written()),
        (ALL_HELD.map(held), vec![])
    );
    world.start(&config(&dns, PATIENT));
    dns.queries(2).await;
    assert_eq!(world.written(), Vec::<String>::new());
    dns.say(Reply::text("here"));
    all_up(&world).await;
    world.end().await;
}
