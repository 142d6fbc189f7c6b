-- Types that somebody made: $1 their OIDs.
SELECT json_build_object(
    'name', json_build_array(n.nspname, t.typname),
    'kind', CASE t.typtype WHEN 'e' THEN 'enum' WHEN 'c' THEN 'composite' WHEN 'd' THEN 'domain' WHEN 'r' THEN 'range'
        ELSE 'base' END,
    'owner', pg_get_userbyid(t.typowner),
    'labels', (
        SELECT coalesce(json_agg(e.enumlabel ORDER BY e.enumsortorder), '[]') FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid
    ),
    'attributes', (
        SELECT coalesce(json_agg(json_build_object(
            'name', a.attname,
            'data_type', format_type(a.atttypid, a.atttypmod),
            'collation', CASE WHEN a.attcollation <> at.typcollation THEN (
                SELECT json_build_array(cn.nspname, co.collname) FROM pg_catalog.pg_collation co
                JOIN pg_catalog.pg_namespace cn ON cn.oid = co.collnamespace WHERE co.oid = a.attcollation
            ) END
        ) ORDER BY a.attnum), '[]')
        FROM pg_catalog.pg_attribute a
        JOIN pg_catalog.pg_type at ON at.oid = a.atttypid
        WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    ),
    'base', CASE
        WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod)
        WHEN t.typtype = 'r' THEN (
            SELECT concat_ws(' ', format_type(r.rngsubtype, NULL), oc.opcname, nullif(r.rngcanonical, 0)::regproc,
                             nullif(r.rngsubdiff, 0)::regproc)
            FROM pg_catalog.pg_range r JOIN pg_catalog.pg_opclass oc ON oc.oid = r.rngsubopc WHERE r.rngtypid = t.oid
        ) END,
    'base_name', CASE WHEN t.typtype = 'd' THEN json_build_array(bn.nspname, b.typname) END,
    'not_null', t.typnotnull,
    'default', t.typdefault,
    'collation', CASE WHEN t.typtype = 'd' AND t.typcollation <> b.typcollation THEN (
        SELECT json_build_array(cn.nspname, co.collname) FROM pg_catalog.pg_collation co
        JOIN pg_catalog.pg_namespace cn ON cn.oid = co.collnamespace WHERE co.oid = t.typcollation
    ) END,
    'constraints', (
        SELECT coalesce(json_agg(json_build_object(
            'name', k.conname,
            'definition', regexp_replace(pg_get_constraintdef(k.oid), '( NOT VALID)$', ''),
            'validated', k.convalidated
        ) ORDER BY k.conname), '[]')
        FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'c'
    )
)::text
FROM pg_catalog.pg_type t
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype
LEFT JOIN pg_catalog.pg_namespace bn ON bn.oid = b.typnamespace
WHERE t.oid = ANY ($1::oid[])
