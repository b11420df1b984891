//! The election before a DELETE of the weeder.

use std::future::ready;
use std::time::Duration;

use anyhow::Result;
use common::events::Events;
use common::flags::LeaderElection;
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
        let file = script.life.agents.0[2].start.kubeconfig.clone();
        let (choice, counter) = (
            KubeconfigChoice::path(Some(&file)),
            RequestCounter::default(),
        );
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
        let settings = LeaderElection {
            enabled: true,
            namespace: "garden".to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        };
        let (_, election) =
            LeaderElector::new(client.clone(), settings, "l", "one", Events::none());
        let (_, result) = delete(client, &election, &deletion).await;
        assert_eq!(result, "not_leading");
        assert_eq!(requests.total(), before);
        Ok(())
    })
}
