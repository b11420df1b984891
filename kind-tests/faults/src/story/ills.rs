//! What an API server in memory may do to those who ask it.

use testbed::api::{Fault, FaultId, MemoryApi, Network, When};

/// One way of being ill.
pub enum Ill {
    /// Some requests are not answered as they should be.
    Answers(When, Fault),
    /// Nothing can be listed, and the watches that are open break.
    Lists(Fault),
    /// The way to it is another.
    Network(Network),
    /// It is over at once.
    Moment(fn(&MemoryApi)),
}

impl Ill {
    /// It begins; the fault that is to be taken back at the end, if it is one.
    pub fn begin(self, api: &MemoryApi) -> Option<FaultId> {
        match self {
            Self::Answers(when, fault) => return Some(api.faults().add(when, fault)),
            Self::Lists(fault) => {
                let lists = When::matches(|request| request.verb == "list" || request.verb == "watch");
                let id = api.faults().add(lists, fault);
                api.store().break_watches();
                return Some(id);
            }
            Self::Network(network) => api.set_network(network),
            Self::Moment(strike) => strike(api),
        }
        None
    }

    /// It ends.
    pub fn end(api: &MemoryApi, fault: Option<FaultId>) {
        match fault {
            Some(id) => api.faults().remove(id),
            None => api.set_network(Network::Up),
        }
    }
}
