-- The first schema of these that has something in it, which no replay may meet.
SELECT n.nspname
FROM pg_catalog.pg_namespace n
WHERE n.nspname = ANY ($1::text[])
  AND (EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND NOT EXISTS (
           SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'))
    OR EXISTS (SELECT FROM pg_catalog.pg_proc p WHERE p.pronamespace = n.oid AND NOT EXISTS (
           SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')))
ORDER BY 1
LIMIT 1
