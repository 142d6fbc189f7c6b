-- A table and all that is below it. $1 schema, $2 table.
WITH RECURSIVE tree AS (
    SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2
    UNION
    SELECT i.inhrelid FROM tree t JOIN pg_inherits i ON i.inhparent = t.oid
)
SELECT n.nspname AS schema, c.relname AS name
FROM tree t JOIN pg_class c ON c.oid = t.oid JOIN pg_namespace n ON n.oid = c.relnamespace
ORDER BY n.nspname, c.relname
