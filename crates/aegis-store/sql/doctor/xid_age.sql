-- How old the oldest transaction id of this database is.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
SELECT age(d.datfrozenxid)::int8 AS xids, current_setting('autovacuum_freeze_max_age')::int8 AS freeze_at FROM pg_database d WHERE d.datname = current_database()
