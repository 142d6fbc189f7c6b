-- Whether LOCK TABLE takes it: an ordinary or partitioned table, or a view. $1 schema, $2 name.
SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p', 'v')) AS is_table
