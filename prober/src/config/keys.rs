//! Every key of the config file with the field it is read into: what it takes, its default (the Go
//! original's where it has the key, rule 22), what it means. The reader and docs/configure.md are
//! made of these tables.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use common::config_object;
use common::document::ConfigValue;
use go_compat::duration::GoDuration;
use prober_core::config::{Config, Dependent, OwnerCheck, ResourceRef, ScaleInfo};
use prober_core::template::Template;

/// The least wait between two probes, and between two checks of an owner record: less would hammer
/// every API server of the seed (D-9), or a DNS server that all shoots share.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// The smallest duration above 0.
const POSITIVE: Duration = Duration::from_nanos(1);

config_object! {
    ROOT, root -> Config {
        kubeconfig_secret_name = name, "kubeConfigSecretName", "the name of a Secret", "",
            "The Secret in the shoot's namespace on the seed whose key `kubeconfig` leads to the shoot";
        probe_interval = at_least(SHORTEST_INTERVAL), "probeInterval", "a duration of at least 1s", "10s",
            "The longest wait between two probes; when the verdict could fall earlier, the prober probes then";
        initial_delay = at_least(Duration::ZERO), "initialDelay", "a duration that is not negative", "30s",
            "From the moment a shoot may be probed to the first write";
        probe_timeout = at_least(POSITIVE), "probeTimeout", "a duration above 0", "30s",
            "The longest that a whole probe may take";
        backoff_jitter_factor = |value| value.check(value.number()?, |factor| factor.is_finite() && *factor >= 0.0),
            "backoffJitterFactor", "a number of at least 0", "0.2",
            "The wait between probes is stretched by up to this share of itself, so that shoots do not move in step";
        node_monitor_grace = at_least(POSITIVE), "kcmNodeMonitorGraceDuration", "a duration above 0", "40s",
            "How long kube-controller-manager waits for a lease's renewal before it marks the node Unknown; a shoot's own `nodeMonitorGracePeriod` wins. A lease counts as expired after 0.75 of it, but no earlier than after one and a half of its node's renewals (15s)";
        node_lease_failure_fraction = |value| value.check(value.number()?, |fraction| *fraction > 0.0 && *fraction <= 1.0),
            "nodeLeaseFailureFraction", "a number above 0 and at most 1", "0.6",
            "The share of candidate leases that must be expired for a scale-down";
        scale_up_stabilization = at_least(Duration::ZERO), "scaleUpStabilization", "a duration that is not negative", "0s",
            "How long the leases must be renewed before anything is restored. Not in the Go original";
        restore_only_held_down = |value| value.boolean(), "restoreOnlyHeldDown", "true or false", "false",
            "Restore only what the watchdog took down, and not whatever is configured and found at 0. Not in the Go original";
        standby_protects = |value| value.boolean(), "standbyProtects", "true or false", "true",
            "Let a replica that does not lead protect when the leader has not acted in time. Not in the Go original";
        owner_check = |value| value.optional(owner_check), "ownerCheck", "an object", "null",
            "Ask a DNS record whose the shoot is, and write nothing for a shoot that is not ours. Not in the Go original";
        dependents = dependents, "dependentResourceInfos", "a list of at least one resource to scale", "",
            "What is scaled; no resource twice";
    }
}

config_object! {
    DEPENDENT, dependent -> Dependent {
        resource = resource, "ref", "an object with kind, name and apiVersion", "",
            "The resource, in every shoot's namespace on the seed";
        optional = |value| value.boolean(), "optional", "true or false", "false", "Whether its absence is no error";
        scale_up = scale, "scaleUp", "an object, as {level: 0}", "", "How it is scaled up";
        scale_down = scale, "scaleDown", "an object, as {level: 0}", "", "How it is scaled down";
    }
}

config_object! {
    REF, resource -> ResourceRef {
        api_version = api_version, "apiVersion", "an apiVersion, as apps/v1", "", "As in a manifest";
        kind = name, "kind", "a kind with replicas or a scale subresource, as Deployment", "", "As in a manifest";
        name = name, "name", "the name of a resource", "", "The object's name";
    }
}

config_object! {
    SCALE, scale -> ScaleInfo {
        level = |value| value.integer(), "level", "a whole number", "0",
            "Lower levels go first, equal ones together; may be negative";
        initial_delay = at_least(Duration::ZERO), "initialDelay", "a duration that is not negative", "0s",
            "The wait before it is scaled, once its level has begun and only if there is something to scale. In `scaleDown` protection comes that much later";
        timeout = at_least(POSITIVE), "timeout", "a duration above 0", "30s",
            "The longest that its requests may take; on the way down an answer is waited for 5 s at most, then it is requested again. The later levels of a restore wait for so long for what cannot be scaled";
    }
}

config_object! {
    OWNER_CHECK, owner_record -> OwnerCheck {
        name = |value| template(value, Template::parse_name), "name", "a DNS name with placeholders", "",
            "The name of the TXT record, as `owner.{{domain}}`";
        value = |value| template(value, Template::parse), "value", "a text with placeholders", "",
            "What the record says of a shoot that is ours, to the letter, as `{{seed}}`";
        servers = |value| value.list(server), "servers", "a list of `address:port`", "[]",
            "The DNS servers to ask; none: those of the pod";
        interval = at_least(SHORTEST_INTERVAL), "interval", "a duration of at least 1s", "30s",
            "The wait between two checks; sooner after one that failed";
        timeout = at_least(POSITIVE), "timeout", "a duration above 0 and below `interval`", "2s",
            "The longest that a check may take";
        tolerance = at_least(POSITIVE), "tolerance", "a duration of at least `interval`", "5m0s",
            "For how long a record that cannot be resolved changes nothing; then it is as if the shoot were not ours";
        on_loss = |value| value.parse(), "onLoss", "standDown or passivate", "standDown",
            "What becomes of a shoot that is known to belong elsewhere: nothing is written any more, or its resources are taken to 0 in the order of a scale-down";
    }
}

fn at_least(least: Duration) -> impl Fn(&ConfigValue<'_>) -> Option<Duration> {
    move |value| value.duration_of_at_least(least)
}

/// A text that is not blank.
fn name(value: &ConfigValue<'_>) -> Option<String> {
    value.check(value.text()?, |text| !text.trim().is_empty())
}

/// `version` or `group/version`, neither part blank.
fn api_version(value: &ConfigValue<'_>) -> Option<String> {
    value.check(value.text()?, |text| {
        text.split('/').count() <= 2 && text.split('/').all(|part| !part.trim().is_empty())
    })
}

fn dependents(value: &ConfigValue<'_>) -> Option<Vec<Dependent>> {
    let mut seen = HashSet::new();
    let dependents = value.list(|item| {
        let dependent = dependent(item)?;
        let resource = &dependent.resource;
        let expected = format!("each resource once, but {resource} is listed again");
        let is_new = seen.insert(resource.clone());
        item.accept(is_new.then_some(dependent), expected)
    })?;
    value.check(dependents, |dependents| !dependents.is_empty())
}

fn owner_check(value: &ConfigValue<'_>) -> Option<OwnerCheck> {
    let check = owner_record(value)?;
    let [timeout, interval, tolerance] =
        [check.timeout, check.interval, check.tolerance].map(GoDuration::from_std);
    let timeout = value.field("timeout").accept(
        (timeout < interval).then_some(()),
        format!("less than the interval of {interval}, not {timeout}"),
    );
    let tolerance = value.field("tolerance").accept(
        (tolerance >= interval).then_some(()),
        format!("at least the interval of {interval}, not {tolerance}"),
    );
    timeout.and(tolerance).map(|()| check)
}

fn template(
    value: &ConfigValue<'_>,
    parse: fn(&str) -> Result<Template, &'static str>,
) -> Option<Template> {
    parse(&value.text()?)
        .map_err(|expected| value.refuse(expected))
        .ok()
}

/// Without a port: DNS' own, 53.
fn server(value: &ConfigValue<'_>) -> Option<SocketAddr> {
    let text = value.text()?;
    let address = text.parse().or_else(|_| {
        text.parse()
            .map(|address: IpAddr| SocketAddr::new(address, 53))
    });
    value.accept(address.ok(), "the address of a DNS server, as 10.0.0.10:53")
}
