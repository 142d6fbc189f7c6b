-- Tables of the engine that autovacuum leaves out.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: many
SELECT c.relname::text AS name FROM pg_class c
WHERE c.relnamespace = 'aegis'::regnamespace AND c.relkind = 'r' AND c.reloptions && ARRAY['autovacuum_enabled=off', 'autovacuum_enabled=false']
ORDER BY 1
