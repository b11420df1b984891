//! What an API server in memory may do to those who ask it.

use api_server::{Fault, MemoryApi, Network, When};

/// One fault to inject.
pub enum InjectedFault {
    /// Some requests are not answered as they should be.
    Answers(When, Fault),
    /// Nothing can be listed, and the watches that are open break.
    Lists(Fault),
    /// The way to it is another.
    Network(Network),
    /// It is over at once.
    Moment(fn(&MemoryApi)),
}

impl InjectedFault {
    /// It lasts for as long as this takes, if it is not over at once.
    pub async fn during(self, api: &MemoryApi, time: impl Future<Output = ()>) {
        let fault = match self {
            Self::Answers(when, fault) => Some(api.faults().add(when, fault)),
            Self::Lists(fault) => {
                let lists =
                    When::matches(|request| request.verb == "list" || request.verb == "watch");
                let id = api.faults().add(lists, fault);
                api.store().break_watches();
                Some(id)
            }
            Self::Network(network) => {
                api.set_network(network);
                None
            }
            Self::Moment(strike) => return strike(api),
        };
        time.await;
        match fault {
            Some(id) => api.faults().remove(id),
            None => api.set_network(Network::Up),
        }
    }
}
