#!/bin/sh
# Temporal's two databases, created or upgraded. Every step may be repeated.
set -eu
SQL_PASSWORD=$(cat /run/secrets/postgres-password)
export SQL_PASSWORD

for names in temporal:temporal temporal_visibility:visibility; do
  database=${names%:*}
  temporal-sql-tool --db "$database" create-database
  temporal-sql-tool --db "$database" setup-schema --version 0.0
  temporal-sql-tool --db "$database" update-schema --schema-name "postgresql/v12/${names#*:}"
done
