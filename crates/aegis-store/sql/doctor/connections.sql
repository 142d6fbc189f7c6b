-- Connections against what the server admits for ordinary roles.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
SELECT (SELECT coalesce(sum(d.numbackends), 0)::int8 FROM pg_stat_database d) AS used,
    current_setting('max_connections')::int8 - current_setting('superuser_reserved_connections')::int8 AS most
