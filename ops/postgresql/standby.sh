#!/bin/bash
# The standby: copies the primary when its own folder is empty, and follows it from then on.
# After a failover to it the former primary must not be started as it is: docs/postgresql.md.
set -euo pipefail
umask 077
passfile=$(mktemp)
echo "*:*:*:$POSTGRES_USER:$(< "$POSTGRES_PASSWORD_FILE")" > "$passfile"
primary="${PRIMARY:-host=db-1} user=$POSTGRES_USER passfile=$passfile application_name=db2"
if [[ ! -s "$PGDATA/PG_VERSION" ]]; then
    until pg_basebackup --pgdata="$PGDATA" --wal-method=stream --checkpoint=fast --dbname="$primary"; do
        find "$PGDATA" -mindepth 1 -delete
        sleep 1
    done
    touch "$PGDATA/standby.signal"
fi
# The copy waits for nobody when it is promoted: the primary's setting names a standby, and then there is none. Also in
# one that an earlier version of this file made. Once there is a standby again:
# alter system reset synchronous_standby_names; select pg_reload_conf();
if [[ -e "$PGDATA/standby.signal" ]] && ! grep -q '^synchronous_standby_names' "$PGDATA/postgresql.auto.conf"; then
    echo "synchronous_standby_names = ''" >> "$PGDATA/postgresql.auto.conf"
fi
exec postgres -c "primary_conninfo=$primary" -c hot_standby=on "$@"
