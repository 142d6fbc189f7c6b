-- Columns and expressions as the server prints them when nothing but pg_catalog is in search_path: {schema}, {table} and {views} are
-- literals. In a batch, so without parameters.
SELECT 'column', a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE n.nspname = {schema} AND c.relname = {table};
SELECT 'view', c.relname, pg_get_viewdef(c.oid)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = {schema} AND starts_with(c.relname, {views});
