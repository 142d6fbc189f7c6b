-- Sequences without their values: $1 their OIDs.
SELECT json_build_object(
    'name', json_build_array(n.nspname, c.relname),
    'owner', pg_get_userbyid(c.relowner),
    'data_type', format_type(s.seqtypid, NULL),
    'start', s.seqstart,
    'min', s.seqmin,
    'max', s.seqmax,
    'increment', s.seqincrement,
    'cache', s.seqcache,
    'cycle', s.seqcycle,
    'owned_by', CASE WHEN owned.attname IS NOT NULL
        THEN json_build_array(json_build_array(owned.nspname, owned.relname), owned.attname) END,
    'identity', coalesce(owned.deptype = 'i', false),
    'unlogged', c.relpersistence = 'u'
)::text
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_sequence s ON s.seqrelid = c.oid
LEFT JOIN LATERAL (
    SELECT d.deptype, tn.nspname, t.relname, a.attname
    FROM pg_catalog.pg_depend d
    JOIN pg_catalog.pg_class t ON t.oid = d.refobjid
    JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
    JOIN pg_catalog.pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.objsubid = 0
      AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i')
    LIMIT 1
) AS owned ON true
WHERE c.oid = ANY ($1::oid[])
