-- The ledgers of other tools in this database, by the names of their tables.
SELECT n.nspname, c.relname
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p')
  AND c.relname = ANY ($1::text[])
ORDER BY n.nspname, c.relname
