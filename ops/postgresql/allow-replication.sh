#!/bin/sh
# Run once, when the primary's folder is made: lets the standby copy it and follow it. From the next start on, a commit is
# acknowledged when the standby has it too, so that a failover loses nothing (docs/postgresql.md).
echo "host replication $POSTGRES_USER samenet scram-sha-256" >> "$PGDATA/pg_hba.conf"
echo "synchronous_standby_names = 'ANY 1 (db2)'" >> "$PGDATA/postgresql.conf"
