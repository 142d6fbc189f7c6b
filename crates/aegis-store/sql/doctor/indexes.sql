-- Indexes of the engine that cannot be used, and those of the live tasks.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
SELECT coalesce(array_agg(c.relname::text ORDER BY c.relname) FILTER (WHERE NOT i.indisvalid OR NOT i.indisready), '{}') AS invalid,
    coalesce(array_agg(c.relname::text ORDER BY c.relname) FILTER (WHERE i.indrelid = 'aegis.task'::regclass), '{}') AS of_task
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relnamespace = 'aegis'::regnamespace
