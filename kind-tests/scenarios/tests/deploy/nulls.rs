//! A null among the values of the chart is as if it were not there, wherever it stands, and however
//! the chart is installed.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::installation::config;
use testbed::objects::{Manifests, get};

use crate::repository;
use crate::tools::{CHART, chart, given};
use crate::umbrella::{COPY, Umbrella};

/// The fields to follow from the values, the last one's name included.
type Place = Vec<String>;

/// Fields in which a null takes a default out.
const FREE: [&str; 3] = ["labels", "dashboardLabels", "resources"];

/// Values that switch on all that can be, with one for each field that has no default.
fn base() -> Value {
    json!({
        "global": {}, "monitoring": {"enabled": true}, "verticalPodAutoscaler": {"enabled": true},
        "prober": {"config": {"ownerCheck": {"name": "owner.{{domain}}", "value": "{{seed}}"}}},
        "nodeSelector": {"pool": "system"},
    })
}

/// Every place below a value.
fn places(value: &Value, above: &[String], found: &mut BTreeSet<Place>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let place = [above, std::slice::from_ref(name)].concat();
        places(value, &place, found);
        found.insert(place);
    }
}

/// The places that a schema names, outside of lists, where a value may be left out.
fn optional(schema: &Value, above: &[String], found: &mut BTreeSet<Place>) {
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|all| all.contains(&name.into()))
    };
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let place = [above, std::slice::from_ref(name)].concat();
        optional(schema, &place, found);
        if !required(name) {
            found.insert(place);
        }
    }
}

/// All that the schema, the defaults and what is given name.
fn all() -> Result<BTreeSet<Place>> {
    let schema = serde_json::from_str(&repository::text(&format!("{CHART}/values.schema.json"))?)?;
    let defaults = serde_saphyr::from_str(&repository::text(&format!("{CHART}/values.yaml"))?)?;
    let mut found = BTreeSet::new();
    optional(&schema, &[], &mut found);
    places(&defaults, &[], &mut found);
    places(&base(), &[], &mut found);
    // Without a name and a value there is no check.
    found.retain(|place| {
        place[1..] != ["config", "ownerCheck", "name"]
            && place[1..] != ["config", "ownerCheck", "value"]
    });
    ensure!(found.len() > 70, "only {} values", found.len());
    Ok(found)
}

/// The base with a null at a place, and without anything there.
fn null_and_nothing(place: &[String]) -> Result<(Value, Value)> {
    let (name, above) = place.split_last().context("no place")?;
    let (mut null, mut nothing) = (base(), base());
    for (values, with) in [(&mut null, true), (&mut nothing, false)] {
        let mut at = values;
        for field in above {
            at = at
                .as_object_mut()
                .context("no object")?
                .entry(field)
                .or_insert_with(|| json!({}));
        }
        let at = at.as_object_mut().context("no object")?;
        at.remove(name);
        if with {
            at.insert(name.clone(), Value::Null);
        }
    }
    Ok((null, nothing))
}

fn rendered(values: &Value) -> Result<Manifests> {
    let (_file, argument) = given(values)?;
    chart(&[&argument])
}

#[test]
fn a_null_is_the_default() -> Result<()> {
    let umbrella = Umbrella::new(&json!({}), COPY)?;
    for place in all()? {
        let (null, nothing) = null_and_nothing(&place)?;
        let below = |values: &Value| umbrella.render(&json!({"dependency-watchdog": values}));
        let what = place.join(".");
        let alone = rendered(&null).with_context(|| what.clone())?;
        let within = below(&null).with_context(|| what.clone())?;
        ensure!(
            alone == within,
            "{what}: it is another thing in an umbrella"
        );
        let (_, above) = place.split_last().context("no place")?;
        let free = above.iter().any(|field| FREE.contains(&field.as_str()));
        if !free {
            ensure!(
                alone == rendered(&nothing)?,
                "{what}: a null is not the default"
            );
        }
    }
    Ok(())
}

#[test]
fn a_null_takes_a_label_or_a_request_out() -> Result<()> {
    let objects = rendered(&json!({
        "monitoring": {"enabled": true, "labels": {"prometheus": null}, "dashboardLabels": {"grafana_dashboard": null}},
        "prober": {"resources": {"requests": {"cpu": null}}}, "weeder": {"resources": {"requests": null}},
    }))?;
    for (key, pointer, expected) in [
        (
            "ServiceMonitor garden/dependency-watchdog-prober",
            "/metadata/labels",
            json!({"app": "dependency-watchdog-prober"}),
        ),
        (
            "PrometheusRule garden/dependency-watchdog",
            "/metadata/labels",
            json!({"app": "dependency-watchdog"}),
        ),
        (
            "ConfigMap garden/dependency-watchdog-dashboard",
            "/metadata/labels",
            json!({"app": "dependency-watchdog", "dashboard.monitoring.gardener.cloud/seed": "true"}),
        ),
        (
            "Deployment garden/dependency-watchdog-prober",
            "/spec/template/spec/containers/0/resources",
            json!({"requests": {"memory": "256Mi"}}),
        ),
    ] {
        assert_eq!(
            get(&objects, key)?.pointer(pointer),
            Some(&expected),
            "{key}"
        );
    }
    let container = get(&objects, "Deployment garden/dependency-watchdog-weeder")?
        .pointer("/spec/template/spec/containers/0");
    ensure!(
        container.context("no container")?["resources"].is_null(),
        "{container:?}"
    );
    Ok(())
}

#[test]
fn a_null_in_a_list_of_a_config_is_the_agents_default() -> Result<()> {
    let dependent = json!({
        "ref": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "kube-controller-manager"}, "optional": null,
        "scaleUp": {"level": null, "initialDelay": null}, "scaleDown": {"timeout": null},
    });
    let selector = json!({"matchLabels": null, "matchExpressions": [{"key": "role", "operator": "Exists", "values": null}]});
    let objects = rendered(&json!({
        "prober": {"config": {"dependentResourceInfos": [dependent]}},
        "weeder": {"config": {"servicesAndDependantSelectors": {"etcd-main-client": {"podSelectors": [selector]}}}},
    }))?;
    let prober = prober::config::parse(config(&objects, "dependency-watchdog-prober")?)?.config;
    let dependent = &prober::config::to_json(&prober)["dependentResourceInfos"][0];
    assert_eq!(
        (
            &dependent["optional"],
            &dependent["scaleUp"]["level"],
            &dependent["scaleDown"]["timeout"]
        ),
        (&json!(false), &json!(0), &json!("30s"))
    );
    weeder::config::parse(config(&objects, "dependency-watchdog-weeder")?)?;
    Ok(())
}
