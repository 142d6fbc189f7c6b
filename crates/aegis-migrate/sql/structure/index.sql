-- The OID of an index's table, and of the index: $1 schema, $2 name. A relation of that name that is no index has no table.
SELECT c.oid, i.indrelid
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
WHERE n.nspname = $1 AND c.relname = $2
