-- Schemas: $1 their OIDs.
SELECT json_build_object('name', n.nspname, 'owner', pg_get_userbyid(n.nspowner))::text
FROM pg_catalog.pg_namespace n
WHERE n.oid = ANY ($1::oid[])
