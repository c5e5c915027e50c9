#!/bin/sh
# Brings a table of ClickHouse up to date, with curl and jq: clickhouse.sh ORG URL FOLDER, from cron or a timer. FOLDER keeps the cursor, which
# moves when ClickHouse has taken the changes. A run that is killed sends some again: the table keeps the last row of each event. Read it with
# `final where not erased`; `optimize table svc_events final` deletes what was erased from the disk, too.
set -eu
umask 077
org=$1 url=$2 folder=$3
exec 9> "$folder/lock"
flock -n 9 || exit 0
insert() { curl -sS --fail-with-body "$url/?$1" --data-binary "$2"; }
insert "" "create table if not exists svc_events (
  request_id String, occurred_at DateTime('UTC'), visitor_id Nullable(String), account_id Nullable(String), action Nullable(String),
  tag Nullable(String), label Nullable(String), label_reason Nullable(String), suspect_score Nullable(UInt16),
  suspect_level Nullable(String), ip_address Nullable(String), country_code Nullable(String), error Nullable(String), erased UInt8
) engine = ReplacingMergeTree order by request_id"
rm -f "$folder/next"
[ ! -e "$folder/cursor" ] || cp "$folder/cursor" "$folder/next"
svc events tail "$org" --environment "${ENVIRONMENT:-production}" --changes --since 400d --cursor-file "$folder/next" --no-follow --json > "$folder/lines"
jq -c 'if .type == "event.erased" then {request_id, erased: 1} else .event // empty end' "$folder/lines" > "$folder/batch"
[ ! -s "$folder/batch" ] ||
  insert "input_format_skip_unknown_fields=1&date_time_input_format=best_effort&query=insert+into+svc_events+format+JSONEachRow" "@$folder/batch"
mv "$folder/next" "$folder/cursor"
