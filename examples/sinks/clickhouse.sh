#!/bin/sh
# Brings a table of ClickHouse up to date, with curl: clickhouse.sh ORG URL FOLDER, from cron or a timer. FOLDER keeps the cursor, which moves
# when ClickHouse has taken the events. A run that is killed sends some again: the table keeps one of each (read it with `final`).
set -eu
org=$1 url=$2 folder=$3
exec 9> "$folder/lock"
flock -n 9 || exit 0
insert() { curl -sS --fail-with-body "$url/?$1" --data-binary "$2"; }
insert "" 'create table if not exists svc_events (
  request_id String, occurred_at DateTime, visitor_id Nullable(String), account_id Nullable(String), action Nullable(String),
  suspect_score Nullable(UInt8), suspect_level Nullable(String), ip Nullable(String), country Nullable(String),
  error Nullable(String)
) engine = ReplacingMergeTree order by request_id'
rm -f "$folder/next"
[ ! -e "$folder/cursor" ] || cp "$folder/cursor" "$folder/next"
svc events tail "$org" --environment "${ENVIRONMENT:-production}" --since 400d --cursor-file "$folder/next" --no-follow --json > "$folder/batch"
[ ! -s "$folder/batch" ] ||
  insert "input_format_skip_unknown_fields=1&date_time_input_format=best_effort&query=insert+into+svc_events+format+JSONEachRow" "@$folder/batch"
mv "$folder/next" "$folder/cursor"
