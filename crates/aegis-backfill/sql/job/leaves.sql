-- The tables that have rows, below $1 schema, $2 table: itself, or its partitions and heirs. Never locks more than it reads.
WITH RECURSIVE tree AS (
    SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p')
    UNION
    SELECT i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid AND NOT i.inhdetachpending
)
SELECT c.oid, n.nspname AS schema, c.relname AS name, c.relkind = 'r' AS is_plain, c.reltuples::bigint AS rows_estimated,
       coalesce(m.amname, '') = 'heap' AS is_heap
FROM tree t JOIN pg_class c ON c.oid = t.oid JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_am m ON m.oid = c.relam
WHERE c.relkind <> 'p'
ORDER BY n.nspname, c.relname
