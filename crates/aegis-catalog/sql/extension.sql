-- Extensions, but for the language that every database has.
SELECT json_build_object('name', e.extname, 'version', e.extversion, 'schema', n.nspname)::text
FROM pg_catalog.pg_extension e
JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname <> 'plpgsql'
