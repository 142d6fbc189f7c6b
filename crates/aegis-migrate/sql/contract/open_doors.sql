-- Who of these roles can still use an old column, by whatever path (PUBLIC, another role, ownership). $1 schema, $2 table, $3 old columns, $4 roles.
-- No row: the door is shut. A role that does not exist holds nothing.
SELECT r.rolname::text AS role, p.relid::regclass::text AS table, col AS column, priv AS privilege, r.rolsuper AS super
FROM (SELECT format('%I.%I', $1::text, $2::text)::regclass AS relid
      UNION SELECT t.relid FROM pg_partition_tree(format('%I.%I', $1::text, $2::text)::regclass) t) p
CROSS JOIN unnest($3::text[]) AS col
CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) AS priv
JOIN pg_roles r ON r.rolname = ANY ($4::text[])
JOIN pg_attribute a ON a.attrelid = p.relid AND a.attname = col AND NOT a.attisdropped
WHERE has_column_privilege(r.oid, p.relid, a.attnum, priv)
ORDER BY 1, 2, 3, 4
