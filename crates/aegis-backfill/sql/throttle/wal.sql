-- Where the WAL ends, and when.
SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS bytes, extract(epoch FROM clock_timestamp())::float8 AS seconds
