{{- define "capstan.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "capstan.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}

{{- define "capstan.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "capstan.name" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{/* Labels that select one part; argument: (dict "root" . "part" "server"). */}}
{{- define "capstan.selector" -}}
app.kubernetes.io/name: capstan
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "capstan.labels" -}}
{{ include "capstan.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{/* Settings of servers, workers and the migration. */}}
{{- define "capstan.env" -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret }}
      key: {{ .Values.database.key }}
- name: TEMPORAL_ADDRESS
  value: {{ .Values.temporal.address | quote }}
- name: TEMPORAL_NAMESPACE
  value: {{ .Values.temporal.namespace | quote }}
{{- with .Values.temporal.apiKey }}
{{- if .existingSecret }}
- name: TEMPORAL_API_KEY
  valueFrom:
    secretKeyRef:
      name: {{ .existingSecret }}
      key: {{ .key }}
{{- end }}
{{- end }}
{{- with .Values.temporal.tls }}
{{- if .existingSecret }}
- name: TEMPORAL_TLS_CLIENT_CERT_PATH
  value: /etc/capstan/temporal/tls.crt
- name: TEMPORAL_TLS_CLIENT_KEY_PATH
  value: /etc/capstan/temporal/tls.key
{{- if .hasCa }}
- name: TEMPORAL_TLS_SERVER_CA_CERT_PATH
  value: /etc/capstan/temporal/ca.crt
{{- end }}
{{- if .serverName }}
- name: TEMPORAL_TLS_SERVER_NAME
  value: {{ .serverName | quote }}
{{- end }}
{{- end }}
{{- end }}
- name: MEDIA_URL
  value: {{ .Values.media.url | quote }}
- name: HOST
  value: 0.0.0.0
- name: PORT
  value: {{ .Values.server.port | quote }}
- name: PUBLIC_URL
  value: {{ required "publicUrl must say at which address clients reach the API, as https://capstan.example.com" .Values.publicUrl | quote }}
- name: CAPSTAN_MODE
  value: production
- name: ALLOWED_CIDRS
  value: {{ .Values.allowedCidrs | quote }}
- name: SHUTDOWN_GRACE_MS
  value: {{ int .Values.shutdownGraceMs | quote }}
{{- with .Values.payloadKeys }}
{{- if .existingSecret }}
- name: PAYLOAD_KEYS
  valueFrom:
    secretKeyRef:
      name: {{ .existingSecret }}
      key: {{ .key }}
{{- end }}
{{- end }}
{{- if .Values.metrics.enabled }}
- name: METRICS_PORT
  value: {{ .Values.metrics.port | quote }}
- name: METRICS_HOST
  value: 0.0.0.0
{{- end }}
{{- range $name, $value := .Values.config }}
- name: {{ $name }}
  {{- /* Helm reads numbers as floats and would write 2e+09. */}}
  value: {{ if kindIs "float64" $value }}{{ int64 $value | quote }}{{ else }}{{ $value | quote }}{{ end }}
{{- end }}
{{- end -}}

{{/* Settings of servers only. */}}
{{- define "capstan.oidc" -}}
{{- with .Values.oidc }}
{{- if .issuer }}
{{- if not .groups }}
{{- fail "oidc.issuer is set: oidc.groups must say what at least one group may do, or nobody could sign in" }}
{{- end }}
- name: OIDC_ISSUER
  value: {{ .issuer | quote }}
- name: OIDC_CLIENT_ID
  value: {{ required "oidc.issuer is set: oidc.clientId must say what the provider calls Capstan" .clientId | quote }}
- name: OIDC_CLIENT_SECRET
  valueFrom:
    secretKeyRef:
      name: {{ required "oidc.issuer is set: oidc.existingSecret must name the secret of the client" .existingSecret }}
      key: {{ .key }}
- name: OIDC_GROUPS
  value: {{ toJson .groups | quote }}
{{- with .name }}
- name: OIDC_NAME
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The grace period, and 15 s more: 5 s before it to leave the endpoints, 5 s to abort open calls, 5 s to exit. */}}
{{- define "capstan.terminationSeconds" -}}
{{ add (div (add (int .Values.shutdownGraceMs) 999) 1000) 15 }}
{{- end -}}

{{- define "capstan.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "capstan.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "capstan.mounts" -}}
- name: tmp
  mountPath: /tmp
{{- if .Values.media.existingClaim }}
- name: media
  mountPath: {{ trimPrefix "file://" .Values.media.url }}
{{- end }}
{{- if .Values.temporal.tls.existingSecret }}
- name: temporal-tls
  mountPath: /etc/capstan/temporal
  readOnly: true
{{- end }}
{{- end -}}

{{- define "capstan.volumes" -}}
- name: tmp
  emptyDir: {}
{{- if .Values.media.existingClaim }}
- name: media
  persistentVolumeClaim:
    claimName: {{ .Values.media.existingClaim }}
{{- end }}
{{- if .Values.temporal.tls.existingSecret }}
- name: temporal-tls
  secret:
    secretName: {{ .Values.temporal.tls.existingSecret }}
{{- end }}
{{- end -}}
