-- Tables that inherit from $1 schema, $2 table and are no partitions of it: the triggers of a parent do not fire for their rows.
WITH RECURSIVE tree AS (
    SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2
    UNION
    SELECT i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
)
SELECT format('%I.%I', n.nspname, c.relname) AS heir
FROM tree t JOIN pg_class c ON c.oid = t.oid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT c.relispartition AND (n.nspname, c.relname) <> ($1, $2)
ORDER BY 1
