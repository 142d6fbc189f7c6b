-- Whether $3.$4 is a partition of $1.$2, and its DETACH CONCURRENTLY was cut short. No row: it is none.
SELECT h.inhdetachpending
FROM pg_catalog.pg_inherits h
JOIN pg_catalog.pg_class p ON p.oid = h.inhparent
JOIN pg_catalog.pg_namespace pn ON pn.oid = p.relnamespace
JOIN pg_catalog.pg_class c ON c.oid = h.inhrelid
JOIN pg_catalog.pg_namespace cn ON cn.oid = c.relnamespace
WHERE pn.nspname = $1 AND p.relname = $2 AND cn.nspname = $3 AND c.relname = $4
