{{- define "stepjet.labels" -}}
app.kubernetes.io/name: stepjet
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "stepjet.meta" -}}
name: {{ printf "%s-%s" .root.Release.Name .component | trunc 63 | trimSuffix "-" }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "stepjet.labels" . | nindent 2 }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "stepjet.image" -}}
{{- $i := .root.Values.image -}}
{{- printf "%s/%s%s:%s" $i.registry $i.prefix .program (default .root.Chart.AppVersion $i.tag) -}}
{{- end }}

{{/* The spec of its pods */}}
{{- define "stepjet.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .grace }}
securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- if .once }}
restartPolicy: Never
{{- else }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "stepjet.labels" . | nindent 8 }}
{{- end }}
containers:
  - name: {{ .program }}
    image: {{ .image | default (include "stepjet.image" .) | quote }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    {{- with .args }}
    args: {{ toJson . }}
    {{- end }}
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, runAsNonRoot: true, capabilities: {drop: [ALL]}}
    {{- if not .once }}
    ports:
      - {name: {{ .portName }}, containerPort: {{ .port }}}
    {{- end }}
    {{- if or .unprobed .once }}
    {{- else if eq .portName "health" }}
    startupProbe: {httpGet: {path: /healthz, port: health}, periodSeconds: 2, failureThreshold: 60}
    livenessProbe: {httpGet: {path: /healthz, port: health}, periodSeconds: 10, timeoutSeconds: 5}
    readinessProbe: {httpGet: {path: /readyz, port: health}, periodSeconds: 5, timeoutSeconds: 5}
    {{- else }}
    startupProbe: {tcpSocket: {port: {{ .portName }}}, periodSeconds: 2, failureThreshold: 60}
    livenessProbe: {tcpSocket: {port: {{ .portName }}}, periodSeconds: 10, timeoutSeconds: 5}
    readinessProbe: {tcpSocket: {port: {{ .portName }}}, periodSeconds: 5, timeoutSeconds: 5}
    {{- end }}
    env:
      - {name: NATS_URL, value: {{ .root.Values.nats.url | quote }}}
      {{- if and (eq .portName "health") (not .unprobed) (not .once) }}
      - {name: STEPJET_HEALTH, value: ":{{ .port }}"}
      {{- end }}
      {{- with .root.Values.nats.tls }}
      {{- if .secret }}
      - {name: NATS_CA, value: /etc/stepjet/tls/ca.crt}
      {{- if .client }}
      - {name: NATS_CERT, value: /etc/stepjet/tls/tls.crt}
      - {name: NATS_KEY, value: /etc/stepjet/tls/tls.key}
      {{- end }}
      {{- end }}
      {{- end }}
      {{- if .root.Values.authorities }}
      - {name: SSL_CERT_FILE, value: /etc/stepjet/authorities/ca.crt}
      {{- end }}
      {{- with .of.credentials }}
      {{- if .secret }}
      - {name: {{ if eq .form "nkey" }}NATS_NKEY{{ else }}NATS_CREDS{{ end }}, value: /etc/stepjet/credentials/{{ .form }}}
      {{- end }}
      {{- if .inboxPrefix }}
      - {name: NATS_INBOX_PREFIX, value: {{ .inboxPrefix | quote }}}
      {{- end }}
      {{- end }}
      {{- range $name, $value := .own }}
      - {name: {{ $name }}, value: {{ $value | quote }}}
      {{- end }}
      {{- range $name, $value := .of.env }}
      - {name: {{ $name }}, value: {{ $value | quote }}}
      {{- end }}
    {{- with .keys }}
    envFrom:
      - secretRef: {name: {{ . }}}
    {{- end }}
    resources: {{ toJson .of.resources }}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      {{- if .files }}
      - {name: files, mountPath: /etc/stepjet/files, readOnly: true}
      {{- end }}
      {{- if .root.Values.nats.tls.secret }}
      - {name: tls, mountPath: /etc/stepjet/tls, readOnly: true}
      {{- end }}
      {{- if .root.Values.authorities }}
      - {name: authorities, mountPath: /etc/stepjet/authorities, readOnly: true}
      {{- end }}
      {{- if .of.credentials.secret }}
      - {name: credentials, mountPath: /etc/stepjet/credentials, readOnly: true}
      {{- end }}
      {{- range $name, $secret := .secrets }}
      - {name: {{ $name }}, mountPath: /etc/stepjet/{{ $name }}, readOnly: true}
      {{- end }}
volumes:
  - {name: tmp, emptyDir: {sizeLimit: 64Mi}}
  {{- if .files }}
  - {name: files, configMap: {name: {{ printf "%s-%s" .root.Release.Name .component | trunc 63 | trimSuffix "-" }}}}
  {{- end }}
  {{- if .root.Values.nats.tls.secret }}
  - {name: tls, secret: {secretName: {{ .root.Values.nats.tls.secret }}, defaultMode: 0440}}
  {{- end }}
  {{- if .root.Values.authorities }}
  - {name: authorities, configMap: {name: {{ .root.Values.authorities }}}}
  {{- end }}
  {{- if .of.credentials.secret }}
  - {name: credentials, secret: {secretName: {{ .of.credentials.secret }}, defaultMode: 0440}}
  {{- end }}
  {{- range $name, $secret := .secrets }}
  - {name: {{ $name }}, secret: {secretName: {{ $secret }}, defaultMode: 0440}}
  {{- end }}
{{- end }}

{{/* A deployment of one program: root, component, program, of (its values), args, port, health, files, mounts, env */}}
{{- define "stepjet.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "stepjet.meta" . | nindent 2 }}
spec:
  {{- if not .scaled }}
  replicas: {{ .of.replicas }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "stepjet.labels" . | nindent 6 }}
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 1}}
  template:
    metadata:
      labels:
        {{- include "stepjet.labels" . | nindent 8 }}
      {{- with .files }}
      annotations: {stepjet.dev/files: {{ toJson . | sha256sum }}}
      {{- end }}
    spec:
      {{- include "stepjet.pod" . | nindent 6 }}
{{- if .files }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "stepjet.meta" . | nindent 2 }}
data:
  {{- range $name, $content := .files }}
  {{ $name }}: {{ toPrettyJson $content | quote }}
  {{- end }}
{{- end }}
{{- if or .scaled (gt (int .of.replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "stepjet.meta" . | nindent 2 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "stepjet.labels" . | nindent 6 }}
{{- end }}
{{- if .root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "stepjet.meta" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "stepjet.labels" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    - ports: [{port: {{ .portName }}}]
      {{- with .from }}
      from: {{ toJson . }}
      {{- end }}
  egress:
    - ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
    - ports: [{port: {{ .root.Values.nats.port }}, protocol: TCP}]
    {{- range .egress }}
    - {{ toJson . }}
    {{- end }}
{{- end }}
{{- end }}

{{- define "stepjet.service" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "stepjet.meta" . | nindent 2 }}
spec:
  selector:
    {{- include "stepjet.labels" . | nindent 4 }}
  ports:
    - {name: {{ .portName }}, port: {{ .port }}, targetPort: {{ .portName }}}
{{- end }}
