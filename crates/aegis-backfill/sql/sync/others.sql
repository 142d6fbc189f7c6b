-- Columns of a table that the trigger of another change writes or listens to: $1 schema, $2 table, $3 the beginning of the names of this one.
SELECT DISTINCT a.attname AS name
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal AND starts_with(t.tgname, 'zz_aegis_sync_') AND NOT starts_with(t.tgname, $3)
JOIN pg_depend d ON d.classid = 'pg_trigger'::regclass AND d.objid = t.oid AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid
WHERE n.nspname = $1 AND c.relname = $2
