-- Triggers that somebody made, and their copies on partitions: $1 the tables' OIDs.
SELECT json_build_object(
    'table', json_build_array(tn.nspname, t.relname),
    'name', g.tgname,
    'enabled', CASE g.tgenabled WHEN 'O' THEN 'origin' WHEN 'D' THEN 'disabled' WHEN 'R' THEN 'replica' ELSE 'always' END,
    'function', json_build_array(pn.nspname, p.proname),
    'definition', pg_get_triggerdef(g.oid, false),
    'inherited', up.oid IS NOT NULL
)::text
FROM pg_catalog.pg_trigger g
JOIN pg_catalog.pg_class t ON t.oid = g.tgrelid
JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid
JOIN pg_catalog.pg_namespace pn ON pn.oid = p.pronamespace
LEFT JOIN pg_catalog.pg_trigger up ON up.oid = g.tgparentid
-- PostgreSQL 14 calls the copies internal too.
WHERE g.tgrelid = ANY ($1::oid[]) AND NOT coalesce(up.tgisinternal, g.tgisinternal)
