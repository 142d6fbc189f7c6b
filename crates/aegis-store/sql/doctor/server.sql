-- The server: version, whether it is a standby, and the settings that durability and cleaning rest on.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int4 AS number, pg_is_in_recovery() AS standby,
    current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
    current_setting('autovacuum') AS autovacuum, current_setting('track_counts') AS track_counts,
    current_setting('synchronous_standby_names') AS sync_names
