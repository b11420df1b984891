//! The election before a DELETE of the weeder.

use std::future::ready;

use anyhow::Result;
use clap::Parser;
use common::events::Events;
use common::flags::AgentArgs;
use common::leader_election::LeaderElector;
use common::metrics::RequestCounter;
use common::seed_client::{self, KubeconfigChoice};
use common::transport::Dialer;
use common::view::Key;
use faults::script::told;
use weeder::delete::delete;
use weeder_core::deletion::Deletion;
use weeder_core::window::OpenReason;

#[test]
fn nothing_is_sent_without_leadership() -> Result<()> {
    told(0, async |script| {
        let world = script.life.world.clone();
        let dialer = Dialer::new(move |address| ready(world.dial(&address)));
        let start = &script.life.agents.0[2].start;
        let choice = KubeconfigChoice::path(Some(&start.kubeconfig));
        let counter = RequestCounter::default();
        let client = seed_client::connect(dialer, choice, &counter).await?;
        let deletion = Deletion {
            pod: Key {
                namespace: "a".into(),
                name: "p".into(),
            },
            uid: "1".into(),
            resource_version: "1".into(),
            service: "etcd-main-client".into(),
            cause: OpenReason::Recovery,
        };
        let requests = script.life.world.seed.requests();
        let before = requests.total();
        let args = AgentArgs::try_parse_from(start.arguments())?.validate()?;
        let elector = LeaderElector::new(
            client.clone(),
            args.leader_election,
            "l",
            "one",
            Events::none(),
        );
        let (_, election) = elector;
        let (_, result) = delete(client, &election, &deletion).await;
        assert_eq!(result, "not_leading");
        assert_eq!(requests.total(), before);
        Ok(())
    })
}
