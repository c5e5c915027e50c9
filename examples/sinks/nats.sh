#!/bin/sh
# Puts each change of an event into a stream of NATS JetStream, with the command `nats` and jq: nats.sh ORG STREAM SUBJECT. Only this program, once,
# writes to the subject. Each message has the cursor of its change: whatever is killed, the next run goes on behind the last one.
set -eu
org=$1 stream=$2 subject=$3
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cursor=$folder/cursor
if [ "$(nats stream info "$stream" --json | jq .state.last_seq)" != 0 ]; then
  nats stream get "$stream" --last-for "$subject" --json | jq -er '.data | @base64d | fromjson | .cursor' > "$cursor"
fi
svc events tail "$org" --environment "${ENVIRONMENT:-production}" --changes --since 400d --cursor-file "$cursor" --json |
  nats pub "$subject" --jetstream --no-templates --send-on newline --quiet
