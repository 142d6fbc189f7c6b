-- What LOCK TABLE is to be asked for: of the names $1 (schemas), $2 (names) those that are tables, and the table of those that are indexes.
-- A view is left to its own statement: LOCK TABLE would lock the tables below it too. So is a table that this role may not lock by name.
SELECT w.nr, n.nspname::text AS schema, c.relname::text AS name
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (schema, name, nr)
JOIN pg_catalog.pg_namespace wn ON wn.nspname = w.schema
JOIN pg_catalog.pg_class wc ON wc.relnamespace = wn.oid AND wc.relname = w.name
LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = wc.oid
JOIN pg_catalog.pg_class c ON c.oid = coalesce(i.indrelid, wc.oid)
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE')
