-- Event triggers.
SELECT json_build_object(
    'name', e.evtname,
    'owner', pg_get_userbyid(e.evtowner),
    'event', e.evtevent,
    'tags', (SELECT coalesce(json_agg(t ORDER BY t), '[]') FROM unnest(e.evttags) AS t),
    'function', json_build_array(n.nspname, p.proname),
    'enabled', CASE e.evtenabled WHEN 'O' THEN 'origin' WHEN 'D' THEN 'disabled' WHEN 'R' THEN 'replica' ELSE 'always' END
)::text
FROM pg_catalog.pg_event_trigger e
JOIN pg_catalog.pg_proc p ON p.oid = e.evtfoid
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_depend d
    WHERE d.classid = 'pg_catalog.pg_event_trigger'::regclass AND d.objid = e.oid AND d.deptype = 'e'
)
