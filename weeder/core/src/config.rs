//! Configuration, read from the config file, in which each key may be missing or null (rule 26). It
//! serializes as the file with every default written out. Ranges are checked by those who read a
//! file.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use go_compat::duration::Seconds;
use go_compat::null::null_as_default;
use serde::{Deserialize, Deserializer, Serialize};

use crate::selector::{Requirement, Selector};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Period of deletions after a Service became ready; positive.
    #[serde(default = "Seconds::<300>::value", with = "Seconds::<300>")]
    pub watch_duration: Duration,
    /// Not empty.
    #[serde(rename = "servicesAndDependantSelectors")]
    #[serde(default, deserialize_with = "services")]
    pub services: Services,
    /// Maximum number of deleted pods of one owner per recovery. `None`: no limit.
    pub max_deletions_per_owner: Option<NonZeroU32>,
}

/// Services with dependent pods, in each namespace that has them.
pub type Services = BTreeMap<ServiceName, Dependants>;

/// Shared, since thousands of EndpointSlices carry the same few names.
pub type ServiceName = Arc<str>;

/// The dependent pods of a Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependants {
    /// Any of these may match; not empty. A null selects nothing, `{}` every pod.
    #[serde(default, deserialize_with = "null_as_default")]
    pub pod_selectors: Vec<Option<Selector>>,
}

/// Deserializes a Service that is null as one without selectors, and null as no Services.
fn services<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Services, D::Error> {
    let services: BTreeMap<_, Option<_>> = null_as_default(deserializer)?;
    let services = services.into_iter();
    Ok(services
        .map(|(name, dependants)| (name, dependants.unwrap_or_default()))
        .collect())
}

impl Dependants {
    pub fn selectors(&self) -> impl Iterator<Item = &Selector> {
        self.pod_selectors.iter().flatten()
    }
}

impl Config {
    /// Query for the API server: the requirements that the selectors of all Services have in
    /// common. `None` if nothing is selected.
    pub fn common_requirements(&self) -> Option<Vec<Requirement>> {
        let mut selectors = self.services.values().flat_map(Dependants::selectors);
        let mut common = selectors.next()?.requirements();
        for selector in selectors {
            let all = selector.requirements();
            common.retain(|requirement| all.contains(requirement));
        }
        Some(common)
    }
}
