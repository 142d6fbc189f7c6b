-- Rules, except a view's own: $1 the relations' OIDs.
SELECT json_build_object(
    'table', json_build_array(tn.nspname, t.relname),
    'name', r.rulename,
    'enabled', CASE r.ev_enabled WHEN 'O' THEN 'origin' WHEN 'D' THEN 'disabled' WHEN 'R' THEN 'replica' ELSE 'always' END,
    'definition', pg_get_ruledef(r.oid, false)
)::text
FROM pg_catalog.pg_rewrite r
JOIN pg_catalog.pg_class t ON t.oid = r.ev_class
JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
WHERE r.ev_class = ANY ($1::oid[]) AND NOT (r.rulename = '_RETURN' AND t.relkind IN ('v', 'm'))
