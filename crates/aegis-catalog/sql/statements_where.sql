-- The schema of pg_stat_statements; no row where it is not installed.
SELECT n.nspname::text
FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pg_stat_statements'
