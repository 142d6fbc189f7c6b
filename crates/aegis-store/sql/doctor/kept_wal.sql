-- Write-ahead log that replication slots keep on the disk.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: many
-- nullable: status, bytes
SELECT s.slot_name::text AS name, s.active, s.wal_status AS status,
    (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END - s.restart_lsn)::float8 AS bytes
FROM pg_replication_slots s ORDER BY s.restart_lsn LIMIT 100
