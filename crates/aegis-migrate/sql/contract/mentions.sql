-- Functions whose text names both a table and a column: perhaps they use it. Weak, since text is not read as SQL. $1 table, $2 column.
SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'aegis_migrate') AND n.nspname !~ '^pg_' AND p.proname !~ '^aegis_sync_'
  AND p.prosrc ~ ('\m' || regexp_replace($1, '([^a-zA-Z0-9_])', '\\\1', 'g') || '\M')
  AND p.prosrc ~ ('\m' || regexp_replace($2, '([^a-zA-Z0-9_])', '\\\1', 'g') || '\M')
ORDER BY 1 LIMIT 20
