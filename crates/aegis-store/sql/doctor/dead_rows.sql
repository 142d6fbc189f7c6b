-- Live and dead rows of the tables that change all the time, as the server estimates them.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: many
-- nullable: vacuumed
SELECT s.relname::text AS name, s.n_live_tup AS live, s.n_dead_tup AS dead, greatest(s.last_autovacuum, s.last_vacuum) AS vacuumed
FROM pg_stat_user_tables s
WHERE s.schemaname = 'aegis' AND s.relname IN ('task', 'parked', 'worker', 'worker_lease', 'housekeeping', 'idempotency', 'pending_outcome')
ORDER BY s.n_dead_tup DESC
