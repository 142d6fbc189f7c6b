-- What roles hold on the tables of a change, by name: on the whole table and on single columns. $1 schema, $2 table, $3 roles.
-- Partitions are tables too: a role that was granted one by itself reaches the column through it.
-- `by` is who granted: only they (or who acts for them) can take it back.
WITH tree AS (
    SELECT c.oid, n.nspname, c.relname, c.relowner, coalesce(c.relacl, acldefault('r', c.relowner)) AS acl
    FROM pg_partition_tree(format('%I.%I', $1::text, $2::text)::regclass) t JOIN pg_class c ON c.oid = t.relid JOIN pg_namespace n ON n.oid = c.relnamespace
    UNION
    SELECT c.oid, n.nspname, c.relname, c.relowner, coalesce(c.relacl, acldefault('r', c.relowner))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = format('%I.%I', $1::text, $2::text)::regclass
)
SELECT t.nspname::text AS schema, t.relname::text AS table, NULL::text AS column, r.rolname::text AS role, a.privilege_type AS privilege,
    a.is_grantable AS grantable, g.rolname::text AS by
FROM tree t CROSS JOIN LATERAL aclexplode(t.acl) a JOIN pg_roles r ON r.oid = a.grantee JOIN pg_roles g ON g.oid = a.grantor
WHERE r.rolname = ANY ($3::text[]) AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
UNION ALL
SELECT t.nspname::text, t.relname::text, c.attname::text, r.rolname::text, a.privilege_type, a.is_grantable, g.rolname::text
FROM tree t JOIN pg_attribute c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped
CROSS JOIN LATERAL aclexplode(c.attacl) a JOIN pg_roles r ON r.oid = a.grantee JOIN pg_roles g ON g.oid = a.grantor
WHERE r.rolname = ANY ($3::text[]) AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
ORDER BY 1, 2, 3 NULLS FIRST, 4, 5
