-- What depends on a column, or on a whole table or view, and would be in the way of its DROP. $1 schema, $2 name, $3 column or NULL.
-- What goes with it (its own indexes, constraints, defaults: deptype a or i) is walked through, and only what stays is told.
WITH RECURSIVE named AS (
    SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2
), tree AS (
    SELECT n.oid FROM named n UNION SELECT t.relid FROM named n CROSS JOIN LATERAL pg_partition_tree(n.oid) t
), start AS (
    SELECT t.oid, coalesce(a.attnum, 0)::int AS sub
    FROM tree t LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = $3 AND NOT a.attisdropped
    WHERE $3::text IS NULL OR a.attnum IS NOT NULL
), going (class, obj, sub) AS (
    SELECT 'pg_class'::regclass::oid, s.oid, s.sub FROM start s
    UNION
    SELECT d.classid, d.objid, d.objsubid FROM going g
    JOIN pg_depend d ON d.refclassid = g.class AND d.refobjid = g.obj AND (g.sub = 0 OR d.refobjsubid = g.sub)
    WHERE d.deptype IN ('a', 'i') AND NOT (d.classid = 'pg_class'::regclass AND d.objid IN (SELECT s.oid FROM start s) AND d.objsubid = 0)
), staying AS (
    SELECT DISTINCT d.classid, d.objid, d.objsubid FROM going g
    JOIN pg_depend d ON d.refclassid = g.class AND d.refobjid = g.obj AND (g.sub = 0 OR d.refobjsubid = g.sub)
    WHERE d.deptype NOT IN ('a', 'i')
      AND NOT EXISTS (SELECT FROM going o WHERE o.class = d.classid AND o.obj = d.objid AND (o.sub = 0 OR o.sub = d.objsubid))
)
SELECT DISTINCT coalesce(i.type, '') AS kind, coalesce(i.schema, '') AS schema, coalesce(i.name, '') AS name, i.identity AS identity
FROM staying s
-- A view depends by its rule, and what is told is the view.
LEFT JOIN pg_rewrite r ON s.classid = 'pg_rewrite'::regclass AND r.oid = s.objid
CROSS JOIN LATERAL pg_identify_object(
    CASE WHEN r.oid IS NULL THEN s.classid ELSE 'pg_class'::regclass::oid END, coalesce(r.ev_class, s.objid), CASE WHEN r.oid IS NULL THEN s.objsubid ELSE 0 END
) i
ORDER BY 1, 2, 3, 4 LIMIT 50
