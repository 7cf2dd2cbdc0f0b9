{{/*
The name of most objects: the release's name, with the chart's name after it unless it contains that.
A Service's name may hold no dot, so a release's dots become dashes.
*/}}
{{- define "evenkeel.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := .Release.Name -}}
{{- if .Values.fullnameOverride -}}
{{- $full = .Values.fullnameOverride -}}
{{- else if not (contains $name .Release.Name) -}}
{{- $full = printf "%s-%s" .Release.Name $name -}}
{{- end -}}
{{- $full | replace "." "-" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/*
The name of what stands outside the release's namespace: without the namespace in it, the objects of
two releases of one name would collide. No other name holds a colon.
*/}}
{{- define "evenkeel.outerName" -}}
{{- $full := include "evenkeel.fullname" . -}}
{{- if eq $full .Release.Namespace -}}
{{- $full -}}
{{- else -}}
{{- printf "%s:%s" $full .Release.Namespace -}}
{{- end -}}
{{- end -}}

{{/* The name of the Service of /metrics: 63 characters with its end. */}}
{{- define "evenkeel.metricsName" -}}
{{- printf "%s-metrics" (include "evenkeel.fullname" . | trunc 55 | trimSuffix "-") -}}
{{- end -}}

{{- define "evenkeel.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "evenkeel.fullname" .) -}}
{{- end -}}

{{/* The labels by which the Deployment and the Service know the Pod. They can never change. */}}
{{- define "evenkeel.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The labels of every object: a dictionary, since a key that is written twice is refused. */}}
{{- define "evenkeel.labels" -}}
{{- $own := include "evenkeel.selectorLabels" . | fromYaml -}}
{{- $standard := dict
      "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
      "app.kubernetes.io/version" (.Chart.AppVersion | replace "+" "_" | trunc 63 | trimSuffix "-")
      "app.kubernetes.io/managed-by" .Release.Service
      "app.kubernetes.io/part-of" "evenkeel" -}}
{{- merge dict $own (.Values.commonLabels | default dict) $standard | toYaml -}}
{{- end -}}

{{/* The settings file. `config: null`, as YAML reads a `config:` with nothing after it, is an empty one. */}}
{{- define "evenkeel.config" -}}
{{- .Values.config | default dict | toYaml -}}
{{- end -}}

{{/* What keeps the ledger: `postgresql`, `sqlite`, or `none`. */}}
{{- define "evenkeel.store" -}}
{{- $url := .Values.store.url -}}
{{- if or .Values.store.existingSecret.name (regexMatch "^postgres(ql)?:" $url) -}}
postgresql
{{- else if eq $url "none" -}}
none
{{- else -}}
sqlite
{{- end -}}
{{- end -}}

{{/* The claim that holds the file of a SQLite store; empty: the file goes with the Pod. */}}
{{- define "evenkeel.claim" -}}
{{- $persistence := .Values.store.persistence -}}
{{- if and $persistence.enabled (eq (include "evenkeel.store" .) "sqlite") -}}
{{- $persistence.existingClaim | default (include "evenkeel.fullname" .) -}}
{{- end -}}
{{- end -}}

{{- define "evenkeel.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/*
What the operator uses, and no more. `scheduledjobs/finalizers: update` is asked for by the admission
plugin OwnerReferencesPermissionEnforcement (OpenShift has it on): the operator's Jobs block the
deletion of their owner.
*/}}
{{- define "evenkeel.rules" -}}
- apiGroups: [evenkeel.dev]
  resources: [scheduledjobs]
  verbs: [get, list, watch]
- apiGroups: [evenkeel.dev]
  resources: [scheduledjobs/status]
  verbs: [patch]
- apiGroups: [evenkeel.dev]
  resources: [scheduledjobs/finalizers]
  verbs: [update]
# It makes a request for the annotation evenkeel.dev/trigger, and deletes one whose ttl has passed.
- apiGroups: [evenkeel.dev]
  resources: [runrequests]
  verbs: [get, list, watch, create, delete]
- apiGroups: [evenkeel.dev]
  resources: [runrequests/status]
  verbs: [patch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, delete]
# Why a run failed, and why a Pod does not start.
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create, patch]
{{- end -}}

{{/*
Whose token the ServiceMonitor scrapes /metrics/schedules with: `own`, which the chart makes, or
`given`; empty: it is not scraped. No Role can hold the right to it, so with `namespaces` there is no
own one.
*/}}
{{- define "evenkeel.scheduleMetrics" -}}
{{- $setting := dig "metrics" "schedules" "Auto" (.Values.config | default dict) | toString -}}
{{- $monitor := .Values.serviceMonitor -}}
{{- if and $monitor.enabled $monitor.schedules.enabled (not (has $setting (list "Off" "false"))) -}}
{{- if $monitor.schedules.secret.name -}}
given
{{- else if and .Values.rbac.create (not .Values.namespaces) -}}
own
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What both endpoints of the ServiceMonitor have in common. */}}
{{- define "evenkeel.scrape" -}}
{{- $found := dict -}}
{{- range $key := list "interval" "scrapeTimeout" "relabelings" "metricRelabelings" -}}
{{- with index $.Values.serviceMonitor $key -}}
{{- $_ := set $found $key . -}}
{{- end -}}
{{- end -}}
{{- if $found -}}
{{- toYaml $found -}}
{{- end -}}
{{- end -}}
