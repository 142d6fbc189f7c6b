-- The state that is read: the first query of the transaction fixes it.
SELECT pg_current_wal_lsn()::text AS lsn, clock_timestamp()::text AS at
