//! What both the agents' shoots and the weeder's pods are made of on the seed, as YAML.

/// The namespace of a shoot on the seed.
pub fn namespace(name: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Namespace
metadata: {{name: {name}, labels: {{gardener.cloud/role: shoot}}}}
"
    )
}

/// A Deployment of a shoot's control plane with these pods: the rest of their spec, indented.
pub fn deployment(namespace: &str, name: &str, role: &str, replicas: i64, spec: &str) -> String {
    let labels = format!("{{role: {role}, gardener.cloud/role: controlplane}}");
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {labels}}}
  template:
    metadata: {{labels: {labels}}}
    spec:
      terminationGracePeriodSeconds: 1
      automountServiceAccountToken: false
{spec}
"
    )
}

/// A Service over the pods with this label.
pub fn service(namespace: &str, name: &str, label: &str, port: u16) -> String {
    format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{selector: {{{label}}}, ports: [{{port: {port}}}]}}
"
    )
}
