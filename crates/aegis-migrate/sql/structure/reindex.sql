-- What a REINDEX CONCURRENTLY that was cut short leaves beside an index of the table $1.$2.
SELECT n.nspname, c.relname
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE tn.nspname = $1 AND t.relname = $2 AND NOT i.indisvalid AND c.relname ~ '_cc(new|old)[0-9]*$'
ORDER BY 1, 2
