-- The OID of the table of an index: $1 its schema (NULL: this session's temporary one), $2 its name.
SELECT i.indrelid
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = $2 AND CASE WHEN $1::text IS NULL THEN c.relnamespace = pg_my_temp_schema() ELSE n.nspname = $1 END
