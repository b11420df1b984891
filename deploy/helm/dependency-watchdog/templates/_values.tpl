{{/* The values, with the chart's own where they are null or absent. Read with fromYaml. */}}
{{- define "dependency-watchdog.values" -}}
{{- include "dependency-watchdog.filled" (dict "given" .Values "defaults" (.Files.Get "files/values.yaml" | fromYaml)) }}
{{- end }}

{{/*
What is given, with the defaults where it is null or absent, in every map of it. A default label, request, limit or part of a
security context stays away once the map that it is in is given, so that a null takes it out.
*/}}
{{- define "dependency-watchdog.filled" -}}
{{- $filled := .given | toYaml | fromYaml }}
{{- include "dependency-watchdog.fill" (dict "values" $filled "defaults" .defaults) }}
{{- toYaml $filled }}
{{- end }}

{{- define "dependency-watchdog.fill" -}}
{{- range $key := concat (keys .values) (keys .defaults) | uniq }}
{{- $value := index $.values $key }}
{{- $default := index $.defaults $key }}
{{- if kindIs "map" $value }}
{{- $free := has $key (list "labels" "dashboardLabels" "resources" "podSecurityContext" "securityContext") }}
{{- include "dependency-watchdog.fill" (dict "values" $value "defaults" (ternary (dict) $default $free | default dict)) }}
{{- else if not (kindIs "invalid" $value) }}
{{- else if kindIs "invalid" $default }}
{{- $_ := unset $.values $key }}
{{- else }}
{{- $_ := set $.values $key $default }}
{{- end }}
{{- end }}
{{- end }}
