{{/*
What values.schema.json cannot refuse in plain words. Included once, by the Deployment.
*/}}
{{- define "evenkeel.check" -}}
{{- $name := "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?" -}}
{{- range .Values.namespaces -}}
{{- if not (regexMatch (printf "^%s$" $name) .) -}}
{{- fail (printf "namespaces: %q is not the name of a namespace" .) -}}
{{- end -}}
{{- end -}}
{{- range $key := list "nameOverride" "fullnameOverride" -}}
{{- $value := index $.Values $key -}}
{{- if and $value (not (regexMatch (printf "^%s$" $name) $value)) -}}
{{- fail (printf "%s: %q is not a name: write up to 63 of a-z, 0-9 and -, and no - at its ends" $key $value) -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]" (include "evenkeel.fullname" .)) -}}
{{- fail (printf "the name %q begins with a digit, which the name of a Service may not: set fullnameOverride" (include "evenkeel.fullname" .)) -}}
{{- end -}}
{{- if and .Values.image.digest (not (regexMatch "^sha256:[0-9a-f]{64}$" .Values.image.digest)) -}}
{{- fail (printf "image.digest: %q is not a digest: write sha256: and 64 digits of 0-9 and a-f" .Values.image.digest) -}}
{{- end -}}
{{- if not (or .Values.serviceAccount.create .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.name: name the ServiceAccount that is there, or let the chart create one (serviceAccount.create)" -}}
{{- end -}}
{{- range $key := list "interval" "scrapeTimeout" -}}
{{- $value := index $.Values.serviceMonitor $key -}}
{{- if and $value (not (regexMatch "^([0-9]+(ms|s|m|h))+$" $value)) -}}
{{- fail (printf "serviceMonitor.%s: %q is not a duration: write a number and a unit, such as 30s" $key $value) -}}
{{- end -}}
{{- end -}}
{{- include "evenkeel.checkStore" .Values.store -}}
{{- range .Values.extraEnv -}}
{{- if eq .name "EVENKEEL_HEALTH_LISTEN" -}}
{{- fail "extraEnv: EVENKEEL_HEALTH_LISTEN is set by the chart, whose probes and Service need it: see listenHost" -}}
{{- else if eq .name "EVENKEEL_NAMESPACES" -}}
{{- fail "extraEnv: write the chart's own value namespaces instead of EVENKEEL_NAMESPACES: the chart makes a Role in each of them" -}}
{{- else if has .name (list "EVENKEEL_STORE_URL" "EVENKEEL_DATA") -}}
{{- fail (printf "extraEnv: write the chart's own value store.url instead of %s: the chart makes the volume, and chooses how an update goes" .name) -}}
{{- end -}}
{{- end -}}
{{- include "evenkeel.checkConfig" (.Values.config | default dict) -}}
{{- end -}}

{{/* Where the ledger is kept. */}}
{{- define "evenkeel.checkStore" -}}
{{- if and .url (ne .url "none") (not (regexMatch "^(sqlite:///+[^/?#]|postgres(ql)?://.)" .url)) -}}
{{- fail (printf "store.url: %q is not a store: write sqlite:///path/to/file.db, postgresql://user@host/database, or none" (.url | regexFind "^[a-z0-9+.-]*:?")) -}}
{{- end -}}
{{- if regexMatch "^postgres(ql)?://([^/@]*:[^/]*@|[^#]*[?&](ssl)?password=)" .url -}}
{{- fail "store.url holds a password, which everybody who may read the Deployment would see: keep the URL in a Secret, and name the Secret in store.existingSecret" -}}
{{- end -}}
{{- if not (regexMatch "^[0-9]+([.][0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$" .persistence.size) -}}
{{- fail (printf "store.persistence.size: %q is not a quantity: write a number and a unit, such as 2Gi" .persistence.size) -}}
{{- end -}}
{{- end -}}

{{/* Settings that the chart sets itself, and rules between two settings. The operator has the same rules. */}}
{{- define "evenkeel.checkConfig" -}}
{{- if hasKey . "namespaces" -}}
{{- fail "config.namespaces: write the chart's own value namespaces instead: the chart makes a Role in each of them" -}}
{{- end -}}
{{- if hasKey . "data" -}}
{{- fail "config.data: the chart mounts the data directory, and says where it is: see store.persistence" -}}
{{- end -}}
{{- if hasKey (.store | default dict) "url" -}}
{{- fail "config.store.url: write the chart's own value store.url instead: the chart makes the volume, and chooses how an update goes" -}}
{{- end -}}
{{- range $key := list "listen" "healthListen" -}}
{{- if hasKey $ $key -}}
{{- fail (printf "config.%s: the chart sets the address, which its probes and Service need: see listenHost" $key) -}}
{{- end -}}
{{- end -}}
{{- $lookahead := .lookahead | default 600 | float64 -}}
{{- if ge (.indexRebuild | default 60 | float64) $lookahead -}}
{{- fail (printf "config.indexRebuild (%v) must be below config.lookahead (%v): the index would be empty before it is rebuilt" (.indexRebuild | default 60) $lookahead) -}}
{{- end -}}
{{- if gt (addf $lookahead (.grace | default 30 | float64)) 65000.0 -}}
{{- fail (printf "config.lookahead (%v) and config.grace (%v) must not exceed 65000 together: the index holds a due time as a number of seconds in 16 bits" $lookahead (.grace | default 30)) -}}
{{- end -}}
{{- end -}}
