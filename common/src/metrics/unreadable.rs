//! `dwd_unreadable_objects_total`: objects of the seed that cannot be read.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Counts objects by their resource. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct UnreadableObjects(Family<[(&'static str, &'static str); 1], Counter>);

impl UnreadableObjects {
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "dwd_unreadable_objects",
            "Objects that could not be read; what was known of them stays",
            self.0.clone(),
        );
    }

    /// Returns the counter of a resource, which is shown from then on.
    pub(crate) fn of(&self, resource: &'static str) -> Counter {
        self.0.get_or_create(&[("resource", resource)]).clone()
    }
}
