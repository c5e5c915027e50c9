#!/bin/sh
# Puts each change of an event into a topic of Kafka, with kcat and jq: kafka.sh ORG BROKER TOPIC, until it is ended. Only this program, once, writes to
# partition 0. Each message has the cursor of its change: whatever is killed, the next run goes on behind the last message.
set -eu
org=$1 broker=$2 topic=$3
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cursor=$folder/cursor
while :; do
  last=$(kcat -C -q -e -b "$broker" -t "$topic" -p 0 -o -1)
  rm -f "$cursor"
  [ -z "$last" ] || printf '%s' "$last" | jq -er .cursor > "$cursor"
  # kcat sends what it was given when its input ends, not before.
  svc events tail "$org" --environment "${ENVIRONMENT:-production}" --changes --since 400d --cursor-file "$cursor" --no-follow --json |
    kcat -P -b "$broker" -t "$topic" -p 0 -X enable.idempotence=true
  sleep "${EVERY_S:-5}"
done
