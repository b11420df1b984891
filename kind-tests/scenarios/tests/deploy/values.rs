//! Values of the chart: what they make of the objects, and those that are refused before anything
//! is installed.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use testbed::objects::{Manifests, get};

use crate::tools::{CHART, EVERYTHING, chart, template};

/// Values, as operators write them, and what is then at a place of an object, whose name is given
/// by its end. What is in a pod, its container or a config file begins with that word.
const TAKEN_OVER: &str = "
- values: {image: {repository: e/w, digest: 'sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'}}
  Deployment watchdog-prober container/image: e/w@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
- values: {image: {pullSecrets: [{name: s}]}, nodeSelector: {pool: p}, tolerations: [{operator: Exists}], priorityClassName: ''}
  Deployment watchdog-prober pod/imagePullSecrets: [{name: s}]
  Deployment watchdog-prober pod/nodeSelector: {pool: p}
  Deployment watchdog-weeder pod/tolerations: [{operator: Exists}]
  Deployment watchdog-weeder pod/priorityClassName: null
- values: {podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: null, supplementalGroups: [7]}, securityContext: {capabilities: null}}
  Deployment watchdog-prober pod/securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}, supplementalGroups: [7]}
  Deployment watchdog-weeder container/securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true}
- values: {prober: {extraArgs: [--dry-run], logLevel: debug}}
  Deployment watchdog-prober container/command/5: --zap-log-level=debug
  Deployment watchdog-prober container/command/7: --dry-run
- values: {monitoring: {enabled: true, labels: {prometheus: ours}, runBooks: 'https://git.example.org/'}}
  PrometheusRule watchdog metadata/labels/prometheus: ours
  PrometheusRule watchdog spec/groups/0/rules/0/annotations/runbook_url:
    https://git.example.org/docs/run-books/DependencyWatchdogSeedWideOutage.md
- values: {verticalPodAutoscaler: {enabled: true, updateMode: null}}
  VerticalPodAutoscaler watchdog-prober spec/updatePolicy/updateMode: Recreate
  VerticalPodAutoscaler watchdog-weeder spec/targetRef/name: dependency-watchdog-weeder
- values: {networkPolicy: {}}
  NetworkPolicy watchdog-prober spec/policyTypes: [Ingress, Egress]
  NetworkPolicy watchdog-prober spec/ingress/0: {from: [{namespaceSelector: {}}], ports: [{port: 9643, protocol: TCP}]}
  NetworkPolicy watchdog-prober spec/egress/1/ports: [{port: 443, protocol: TCP}, {port: 6443, protocol: TCP},
    {port: 8443, protocol: TCP}, {port: 9443, protocol: TCP}]
  NetworkPolicy watchdog-prober spec/ingress/1: null
  NetworkPolicy watchdog-weeder spec/ingress/1: null
  NetworkPolicy watchdog-prober spec/egress/0/ports/2: {port: 5353, protocol: UDP}
- values: {networkPolicy: {statusFrom: [{ipBlock: {cidr: 192.0.2.0/24}}]}}
  NetworkPolicy watchdog-prober spec/ingress/1/from: [{ipBlock: {cidr: 192.0.2.0/24}}]
  NetworkPolicy watchdog-prober spec/ingress/1/ports/0/port: 9644
  NetworkPolicy watchdog-weeder spec/ingress/1/from: [{ipBlock: {cidr: 192.0.2.0/24}}]
# A config is merged into Gardener's.
- values: {prober: {config: {probeInterval: 20s}}, weeder: {config: {maxDeletionsPerOwner: 3}}}
  ConfigMap watchdog-prober-config config/probeInterval: 20s
  ConfigMap watchdog-prober-config config/dependentResourceInfos/1/scaleUp: {initialDelay: 30s, level: 1}
  ConfigMap watchdog-weeder-config config/maxDeletionsPerOwner: 3
  ConfigMap watchdog-weeder-config config/watchDuration: 5m0s
# A text stays one, whatever else YAML might take it for.
- values: {verticalPodAutoscaler: {enabled: true, updateMode: 'Off'}, nodeSelector: {pool: 'off'}, priorityClassName: '1234'}
  VerticalPodAutoscaler watchdog-prober spec/updatePolicy/updateMode: 'Off'
  Deployment watchdog-prober pod/nodeSelector/pool: 'off'
  Deployment watchdog-prober pod/priorityClassName: '1234'
- values: {image: {tag: '1234'}, nodeSelector: {pool: 'null'}, priorityClassName: 'null'}
  Deployment watchdog-weeder container/image: dependency-watchdog:1234
  Deployment watchdog-weeder pod/nodeSelector/pool: 'null'
  Deployment watchdog-weeder pod/priorityClassName: 'null'
# A null is the default, wherever it stands.
- values: {replicas: null, image: {tag: null}, networkPolicy: null, podSecurityContext: null, prober: {config: {probeInterval: null}}, weeder: null}
  Deployment watchdog-prober spec/replicas: 2
  Deployment watchdog-prober container/image: dependency-watchdog:VERSION
  Deployment watchdog-weeder pod/securityContext/runAsUser: 65532
  NetworkPolicy watchdog-weeder spec/ingress/0/ports/0/port: 9643
  ConfigMap watchdog-prober-config config/probeInterval: 30s
  ConfigMap watchdog-weeder-config config/watchDuration: 5m0s
# A null takes a label or a request out, and in a list of a config it is left to the agent.
- values: {monitoring: {enabled: true, labels: {prometheus: null}, dashboardLabels: {grafana_dashboard: null}},
    prober: {resources: {requests: {cpu: null}}}, weeder: {resources: {requests: null}}}
  PrometheusRule watchdog metadata/labels: {app: dependency-watchdog}
  ConfigMap watchdog-dashboard metadata/labels/grafana_dashboard: null
  Deployment watchdog-prober container/resources: {requests: {memory: 256Mi}}
  Deployment watchdog-weeder container/resources: null
- values: {prober: {config: {dependentResourceInfos: [{ref: {apiVersion: v1, kind: K, name: x}, optional: null,
    scaleUp: {level: null}, scaleDown: {timeout: null}}]}}}
  ConfigMap watchdog-prober-config config/dependentResourceInfos:
    [{ref: {apiVersion: v1, kind: K, name: x}, optional: null, scaleUp: {level: null}, scaleDown: {timeout: null}}]
";

/// Renders the chart, the config files read.
fn rendered(values: &str) -> Result<Manifests> {
    let mut objects = chart(values)?;
    for object in objects.values_mut() {
        if let Some(config) = object["data"]["dep-config.yaml"].as_str() {
            object["data"]["dep-config.yaml"] = serde_saphyr::from_str(config)?;
        }
    }
    Ok(objects)
}

#[test]
fn values_are_taken_over() -> Result<()> {
    let rows = TAKEN_OVER.replace("VERSION", env!("CARGO_PKG_VERSION"));
    for mut row in serde_saphyr::from_str::<Vec<BTreeMap<String, Value>>>(&rows)? {
        let values = row.remove("values").context("no values")?.to_string();
        let objects = rendered(&values)?;
        for (place, value) in row {
            let [kind, name, place] = place.split(' ').collect::<Vec<_>>()[..] else {
                bail!("not a kind, a name and a place: {place}");
            };
            let object = get(&objects, &format!("{kind} garden/dependency-{name}"))?;
            let place = format!("/{place}")
                .replace("/container/", "/pod/containers/0/")
                .replace("/pod/", "/spec/template/spec/")
                .replace("/config/", "/data/dep-config.yaml/");
            let found = object.pointer(&place).unwrap_or(&Value::Null);
            assert_eq!(found, &value, "{values}: {kind} {name} {place}");
        }
    }
    Ok(())
}

#[test]
fn namespace_is_that_of_all() -> Result<()> {
    for namespace in ["watch", "1234", "null"] {
        for (key, object) in &template(CHART, namespace, EVERYTHING)? {
            let own = &object["metadata"]["namespace"];
            ensure!(own == namespace || key.starts_with("ClusterRole"), "{key}");
            if key.starts_with("ClusterRoleBinding") {
                assert_eq!(object["subjects"][0]["namespace"], namespace, "{key}");
            }
            if key.starts_with("Deployment") {
                let election = format!("--leader-election-namespace={namespace}");
                ensure!(object.to_string().contains(&election), "{object}");
            }
        }
    }
    Ok(())
}

/// Values that make no sense, and the word that says where.
const REFUSED: &str = "\
replica: replica: 2
prober: prober: {replicas: 2}
replicas: replicas: two
replicas: replicas: -1
digest: image: {digest: 'sha256:abc'}
repository: image: {repository: ''}
pullPolicy: image: {pullPolicy: Sometimes}
runAsUser: podSecurityContext: {runAsUser: nobody}
capabilities: securityContext: {capabilities: [ALL]}
logLevel: prober: {logLevel: warn}
extraArgs: weeder: {extraArgs: [zap-devel]}
nodeLeaseFailureFraction: prober: {config: {nodeLeaseFailureFraction: 1.5}}
nodeLeaseFailureFraction: prober: {config: {nodeLeaseFailureFraction: 0}}
probeInterval: prober: {config: {probeInterval: 30}}
initialDelay: prober: {config: {initialDelay: 1d}}
probeIntervall: prober: {config: {probeIntervall: 30s}}
value: prober: {config: {ownerCheck: {name: 'owner.{{domain}}'}}}
onLoss: prober: {config: {ownerCheck: {name: o, value: v, onLoss: end}}}
dependentResourceInfos: prober: {config: {dependentResourceInfos: []}}
name: prober: {config: {dependentResourceInfos: [{ref: {apiVersion: apps/v1, kind: Deployment}, scaleUp: {}, scaleDown: {}}]}}
level: prober: {config: {dependentResourceInfos: [{ref: {apiVersion: v1, kind: K, name: x}, scaleUp: {level: '0'}, scaleDown: {}}]}}
podSelectors: weeder: {config: {servicesAndDependantSelectors: {etcd: {podSelectors: []}}}}
operator: weeder: {config: {servicesAndDependantSelectors: {etcd: {podSelectors: [{matchExpressions: [{key: k, operator: Is}]}]}}}}
apiServerPorts: networkPolicy: {apiServerPorts: [70000]}
metricsFrom: networkPolicy: {metricsFrom: []}
statusFrom: networkPolicy: {statusFrom: [prometheus]}
updateMode: verticalPodAutoscaler: {updateMode: Always}
scrapeInterval: monitoring: {scrapeInterval: '30'}";

#[test]
fn nonsense_is_refused_by_name() -> Result<()> {
    for (named, values) in REFUSED.lines().filter_map(|row| row.split_once(": ")) {
        let refused = chart(values).err();
        let said = format!(
            "{:#}",
            refused.with_context(|| format!("{values} is taken"))?
        );
        ensure!(
            said.contains("schema") && said.contains(named),
            "{values}: {said}"
        );
    }
    Ok(())
}
