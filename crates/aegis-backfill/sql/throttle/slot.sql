-- The most WAL that a slot holds back. One that has lost its WAL holds none.
SELECT coalesce(max(pg_current_wal_lsn() - restart_lsn), 0)::bigint AS bytes FROM pg_replication_slots
