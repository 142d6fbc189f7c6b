-- Who may do what: $1 relations and sequences, $2 functions, $3 types, $4 schemas.
-- What is not written down counts as the server's default. An owner's own rights are told only where some were taken.
WITH object AS (
    SELECT CASE WHEN c.relkind = 'S' THEN 'sequence' ELSE 'table' END AS kind, n.nspname::text AS schema, c.relname::text AS name,
           NULL::text AS part, c.relowner AS owner,
           coalesce(c.relacl, acldefault(CASE WHEN c.relkind = 'S' THEN 's'::"char" ELSE 'r' END, c.relowner)) AS acl,
           acldefault(CASE WHEN c.relkind = 'S' THEN 's'::"char" ELSE 'r' END, c.relowner) AS usual
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = ANY ($1::oid[])
    UNION ALL
    SELECT 'column', n.nspname, c.relname, a.attname, 0, a.attacl, NULL
    FROM pg_catalog.pg_attribute a
    JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE a.attrelid = ANY ($1::oid[]) AND a.attacl IS NOT NULL AND NOT a.attisdropped
    UNION ALL
    SELECT 'function', n.nspname, p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', NULL, p.proowner,
           coalesce(p.proacl, acldefault('f', p.proowner)), acldefault('f', p.proowner)
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE p.oid = ANY ($2::oid[])
    UNION ALL
    SELECT 'type', n.nspname, t.typname, NULL, t.typowner, coalesce(t.typacl, acldefault('T', t.typowner)),
           acldefault('T', t.typowner)
    FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
    WHERE t.oid = ANY ($3::oid[])
    UNION ALL
    SELECT 'schema', n.nspname, n.nspname, NULL, n.nspowner, coalesce(n.nspacl, acldefault('n', n.nspowner)),
           acldefault('n', n.nspowner)
    FROM pg_catalog.pg_namespace n
    WHERE n.oid = ANY ($4::oid[])
    UNION ALL
    -- ALTER DEFAULT PRIVILEGES: the owner is the role for whom it holds.
    SELECT 'default', coalesce(n.nspname, ''), pg_get_userbyid(d.defaclrole),
           CASE d.defaclobjtype WHEN 'r' THEN 'tables' WHEN 'S' THEN 'sequences' WHEN 'f' THEN 'functions' WHEN 'T' THEN 'types'
               WHEN 'n' THEN 'schemas' ELSE 'objects of kind ' || d.defaclobjtype::text END,
           0, d.defaclacl, NULL
    FROM pg_catalog.pg_default_acl d LEFT JOIN pg_catalog.pg_namespace n ON n.oid = d.defaclnamespace
    WHERE d.defaclnamespace = 0 OR d.defaclnamespace = ANY ($4::oid[])
),
right_of AS (
    SELECT o.*, x.grantee, x.privileges
    FROM object o
    CROSS JOIN LATERAL (
        SELECT e.grantee,
               array_agg(DISTINCT e.privilege_type || CASE WHEN e.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) AS privileges
        FROM aclexplode(o.acl) AS e
        GROUP BY e.grantee
    ) AS x
)
SELECT json_build_object(
    'kind', r.kind,
    'object', json_build_array(r.schema, r.name),
    'column', r.part,
    'grantee', CASE WHEN r.grantee = 0 THEN 'PUBLIC' ELSE pg_get_userbyid(r.grantee)::text END,
    'privileges', array_to_json(r.privileges)
)::text
FROM right_of r
WHERE r.grantee <> r.owner OR r.usual IS NULL OR r.privileges <> (
    SELECT array_agg(DISTINCT x.privilege_type) FROM aclexplode(r.usual) AS x WHERE x.grantee = r.owner
)
UNION ALL
-- An owner from whom everything was taken.
SELECT json_build_object(
    'kind', o.kind, 'object', json_build_array(o.schema, o.name), 'column', o.part,
    'grantee', pg_get_userbyid(o.owner), 'privileges', '[]'::json
)::text
FROM object o
WHERE o.usual IS NOT NULL AND NOT EXISTS (SELECT FROM aclexplode(o.acl) AS x WHERE x.grantee = o.owner)
