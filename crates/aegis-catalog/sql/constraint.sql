-- Constraints of tables, without NOT NULL (its column tells it): $1 the tables' OIDs.
-- The rows that the server adds for each partition of a referenced table belong to the one that somebody wrote.
SELECT json_build_object(
    'table', json_build_array(tn.nspname, t.relname),
    'name', k.conname,
    'kind', CASE k.contype
        WHEN 'c' THEN 'check' WHEN 'f' THEN 'foreign' WHEN 'p' THEN 'primary' WHEN 'u' THEN 'unique' WHEN 'x' THEN 'exclusion'
        ELSE 'trigger' END,
    'definition', regexp_replace(
        pg_get_constraintdef(k.oid),
        '( NO INHERIT)?( DEFERRABLE)?( INITIALLY DEFERRED)?( NOT ENFORCED)?( NOT VALID)?$', ''
    ),
    'validated', k.convalidated,
    -- Only on PostgreSQL 18.
    'enforced', CASE WHEN current_setting('server_version_num')::int >= 180000
        THEN (to_jsonb(k) ->> 'conenforced')::boolean ELSE true END,
    'deferrable', k.condeferrable,
    'deferred', k.condeferred,
    'no_inherit', k.connoinherit,
    'local', k.conislocal,
    'columns', (
        SELECT coalesce(json_agg(a.attname ORDER BY u.at), '[]')
        FROM unnest(k.conkey) WITH ORDINALITY AS u (attnum, at)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum
    ),
    'references', CASE WHEN k.confrelid <> 0 THEN (
        SELECT json_build_array(rn.nspname, r.relname) FROM pg_catalog.pg_class r
        JOIN pg_catalog.pg_namespace rn ON rn.oid = r.relnamespace WHERE r.oid = k.confrelid
    ) END,
    'referenced_columns', (
        SELECT coalesce(json_agg(a.attname ORDER BY u.at), '[]')
        FROM unnest(k.confkey) WITH ORDINALITY AS u (attnum, at)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.attnum
    ),
    'index', CASE WHEN k.conindid <> 0 THEN (
        SELECT json_build_array(xn.nspname, x.relname) FROM pg_catalog.pg_class x
        JOIN pg_catalog.pg_namespace xn ON xn.oid = x.relnamespace WHERE x.oid = k.conindid
    ) END,
    'parent', CASE WHEN up.oid IS NOT NULL THEN (
        SELECT json_build_array(json_build_array(un.nspname, u.relname), up.conname) FROM pg_catalog.pg_class u
        JOIN pg_catalog.pg_namespace un ON un.oid = u.relnamespace WHERE u.oid = up.conrelid
    ) END
)::text
FROM pg_catalog.pg_constraint k
JOIN pg_catalog.pg_class t ON t.oid = k.conrelid
JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
LEFT JOIN pg_catalog.pg_constraint up ON up.oid = k.conparentid
WHERE k.conrelid = ANY ($1::oid[]) AND k.contype IN ('c', 'f', 'p', 'u', 'x', 't')
  AND up.conrelid IS DISTINCT FROM k.conrelid
