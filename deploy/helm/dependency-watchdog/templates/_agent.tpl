{{/* The agents that are wanted, by name, each with what sets it apart. Read with fromYaml. */}}
{{- define "dependency-watchdog.agents" -}}
{{- $values := include "dependency-watchdog.values" . | fromYaml }}
{{- if and $values.enabled $values.prober.enabled }}
prober:
  lease: dwd-prober-leader-election
  file: files/prober.yaml
  memoryFloor: 50Mi
  args:
  - --kube-api-qps=20.0
  - --kube-api-burst=100
  - --zap-log-level={{ $values.prober.logLevel }}
  labels:
    networking.gardener.cloud/to-public-networks: allowed
    networking.gardener.cloud/to-private-networks: allowed
    networking.resources.gardener.cloud/to-all-istio-ingresses-istio-ingressgateway-tcp-9443: allowed
    networking.resources.gardener.cloud/to-all-shoots-kube-apiserver-tcp-443: allowed
  rules:
  - apiGroups: [extensions.gardener.cloud]
    resources: [clusters]
    verbs: [get, list, watch]
  - apiGroups: [""]
    resources: [namespaces, secrets]
    verbs: [get, list, watch]
  - apiGroups: [apps]
    resources: [deployments, deployments/scale]
    verbs: [get, list, watch, update, patch]
  - apiGroups: [machine.sapcloud.io]
    resources: [machines]
    verbs: [get, list, watch]
{{- end }}
{{- if and $values.enabled $values.weeder.enabled }}
weeder:
  lease: dwd-weeder-leader-election
  file: files/weeder.yaml
  memoryFloor: 25Mi
  args: []
  labels: {}
  rules:
  - apiGroups: [""]
    resources: [pods]
    verbs: [get, list, watch, delete]
  - apiGroups: [discovery.k8s.io]
    resources: [endpointslices]
    verbs: [get, list, watch]
{{- end }}
{{- end }}

{{- define "dependency-watchdog.image" -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag }}
{{- end -}}
{{- end }}
