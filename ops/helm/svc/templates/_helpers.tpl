{{- define "svc.name" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "svc.selector" -}}
app.kubernetes.io/name: svc
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "svc.labels" -}}
{{ include "svc.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "svc.database" -}}
{{ include "svc.name" . }}-db
{{- end -}}

{{- /* A setting as a variable has it: lists with commas, numbers without an exponent. */ -}}
{{- define "svc.text" -}}
{{- if kindIs "slice" . -}}
{{- $texts := list -}}
{{- range . -}}{{- $texts = append $texts (include "svc.text" .) -}}{{- end -}}
{{- join "," $texts -}}
{{- else if kindIs "string" . -}}
{{- . -}}
{{- else -}}
{{- . | toJson -}}
{{- end -}}
{{- end -}}

{{- /* What no schema can compare. */ -}}
{{- define "svc.checked" -}}
{{- $values := .Values -}}
{{- $settings := $values.settings -}}
{{- if $values.postgresql.enabled -}}
{{- if gt (int ($settings.workers | default 1)) 1 -}}
{{- fail (printf "settings.workers is %v, and a node on PostgreSQL is one process: raise postgresql.nodes" $settings.workers) -}}
{{- end -}}
{{- if and $values.postgresql.url $values.postgresql.cluster.create -}}
{{- fail "postgresql.url names another database than postgresql.cluster makes: set postgresql.cluster.create to false" -}}
{{- end -}}
{{- if not $values.postgresql.cluster.create -}}
{{- $_ := required "postgresql.url: name the database, since postgresql.cluster.create is false" $values.postgresql.url -}}
{{- $_ := required "postgresql.passwordSecret.name: name the Secret with the password, since postgresql.cluster.create is false" $values.postgresql.passwordSecret.name -}}
{{- end -}}
{{- else -}}
{{- $gib := trimSuffix "Gi" $values.persistence.size -}}
{{- if and (ne $gib $values.persistence.size) (ge (float64 ($settings.map_gib | default 16)) (float64 $gib)) -}}
{{- fail (printf "settings.map_gib is %v, and persistence.size is %s: the store has to be full before the disk is" $settings.map_gib $values.persistence.size) -}}
{{- end -}}
{{- end -}}
{{- if and $values.ingress.enabled (not $values.ingress.hosts) -}}
{{- fail "ingress.hosts: name the host, since ingress.enabled is true" -}}
{{- end -}}
{{- end -}}

{{- define "svc.pod" -}}
{{- include "svc.checked" . -}}
metadata:
  labels:
    {{- include "svc.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with .Values.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  # Settings are variables named SVC_...: keep those that Kubernetes makes for Services out of the container.
  enableServiceLinks: false
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . | quote }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: {{ .Values.user }}
    runAsGroup: {{ .Values.user }}
    fsGroup: {{ .Values.user }}
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: svc
      {{- with .Values.image }}
      image: {{ if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
      {{- with .pullPolicy }}
      imagePullPolicy: {{ . }}
      {{- end }}
      {{- end }}
      args: [serve{{ if .Values.init.enabled }}, --init{{ end }}]
      env:
        # A folder of its own, so that the service makes it with mode 0700 whatever the volume's is.
        - {name: SVC_DATA, value: /data/svc}
        - {name: SVC_PEPPER_FILE, value: {{ printf "/etc/svc/pepper/%s" .Values.pepper.key | quote }}}
        - {name: SVC_METRICS_BIND, value: "0.0.0.0:9464"}
        {{- if .Values.postgresql.enabled }}
        - name: SVC_STORE
          value: {{ .Values.postgresql.url | default (printf "postgresql://svc@%s-rw/svc?sslmode=verify-full&sslrootcert=/etc/svc/database/ca.crt" (include "svc.database" .)) | quote }}
        - {name: SVC_STORE_PASSWORD_FILE, value: /etc/svc/database-user/password}
        {{- end }}
        {{- range $name, $value := .Values.settings }}
        {{- if not (or (kindIs "invalid" $value) (and (eq $name "workers") $.Values.postgresql.enabled)) }}
        - {name: SVC_{{ upper $name }}, value: {{ include "svc.text" $value | quote }}}
        {{- end }}
        {{- end }}
        {{- if .Values.init.enabled }}
        # Read once, in an empty store.
        {{- with .Values.init }}
        - {name: SVC_INIT_ORGANIZATION, value: {{ .organization | quote }}}
        {{- with .origins }}
        - {name: SVC_INIT_ORIGINS, value: {{ include "svc.text" . | quote }}}
        {{- end }}
        {{- if not (kindIs "invalid" .creditUsd) }}
        - {name: SVC_INIT_CREDIT_USD, value: {{ include "svc.text" .creditUsd | quote }}}
        {{- end }}
        - {name: SVC_INIT_KEYS_FILE, value: {{ .keysFile | quote }}}
        {{- end }}
        {{- end }}
        {{- with .Values.secretEnv }}{{ toYaml . | nindent 8 }}{{ end }}
      ports:
        - {name: http, containerPort: 8080}
        - {name: metrics, containerPort: 9464}
      # An upgrade of a large store takes its time.
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 5
        failureThreshold: 1440
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        timeoutSeconds: 5
      resources: {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: temporary, mountPath: /tmp}
        - {name: pepper, mountPath: /etc/svc/pepper, readOnly: true}
        {{- if .Values.postgresql.enabled }}
        {{- if include "svc.authority" . }}
        - {name: database, mountPath: /etc/svc/database, readOnly: true}
        {{- end }}
        - {name: database-user, mountPath: /etc/svc/database-user, readOnly: true}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 8 }}{{ end }}
  volumes:
    - name: pepper
      secret: {secretName: {{ .Values.pepper.secretName | quote }}, defaultMode: {{ if .Values.postgresql.enabled }}0440{{ else }}0400{{ end }}}
    # Of commands such as `svc doctor`.
    - name: temporary
      emptyDir: {}
    {{- if .Values.postgresql.enabled }}
    {{- with .Values.postgresql }}
    {{- if include "svc.authority" $ }}
    - name: database
      secret: {secretName: {{ include "svc.authority" $ | quote }}, defaultMode: 0440, items: [{key: {{ .caSecret.key | quote }}, path: ca.crt}]}
    {{- end }}
    - name: database-user
      secret:
        secretName: {{ .passwordSecret.name | default (printf "%s-app" (include "svc.database" $)) | quote }}
        defaultMode: 0440
        items: [{key: {{ .passwordSecret.key | quote }}, path: password}]
    {{- end }}
    # Nothing in it has to be kept.
    - name: data
      emptyDir: {}
    {{- end }}
    {{- with .Values.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- if .Values.postgresql.enabled }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "svc.selector" . | nindent 10 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
{{- end -}}

{{- /* The Secret with the authority of the database's certificate, or nothing. */ -}}
{{- define "svc.authority" -}}
{{- with .Values.postgresql -}}
{{- if .caSecret.name -}}{{ .caSecret.name }}{{- else if .cluster.create -}}{{ include "svc.database" $ }}-ca{{- end -}}
{{- end -}}
{{- end -}}

{{- define "svc.databasePort" -}}
{{- regexFind ":[0-9]+$" (regexFind "^[a-z]+://[^/?]*" .Values.postgresql.url) | trimPrefix ":" | default "5432" -}}
{{- end -}}
