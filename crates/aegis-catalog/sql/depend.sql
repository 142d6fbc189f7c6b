-- What hangs on relations and columns, by the server's own account: $1 the relations' OIDs.
WITH edge AS (
    SELECT d.classid, d.objid, d.objsubid, d.refobjid, d.refobjsubid
    FROM pg_catalog.pg_depend d
    WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = ANY ($1::oid[]) AND d.deptype <> 'e'
),
found AS (
    SELECT e.refobjid, e.refobjsubid, 'index' AS kind, c.oid AS relation, NULL::text AS part
    FROM edge e JOIN pg_catalog.pg_class c ON c.oid = e.objid AND c.relkind IN ('i', 'I')
    WHERE e.classid = 'pg_catalog.pg_class'::regclass
    UNION ALL
    SELECT e.refobjid, e.refobjsubid, 'sequence', c.oid, NULL
    FROM edge e JOIN pg_catalog.pg_class c ON c.oid = e.objid AND c.relkind = 'S'
    WHERE e.classid = 'pg_catalog.pg_class'::regclass
    UNION ALL
    -- An index of a constraint depends on the constraint, not on the columns.
    SELECT i.indrelid, k.attnum, 'index', i.indexrelid, NULL
    FROM pg_catalog.pg_index i
    CROSS JOIN LATERAL unnest(i.indkey::int2[]) AS k (attnum)
    WHERE i.indrelid = ANY ($1::oid[]) AND k.attnum > 0
    UNION ALL
    SELECT h.inhparent, 0, 'child', h.inhrelid, NULL
    FROM pg_catalog.pg_inherits h WHERE h.inhparent = ANY ($1::oid[])
    UNION ALL
    SELECT e.refobjid, e.refobjsubid, CASE k.contype WHEN 'f' THEN 'foreign_key' ELSE 'constraint' END, k.conrelid, k.conname
    FROM edge e JOIN pg_catalog.pg_constraint k ON k.oid = e.objid
    LEFT JOIN pg_catalog.pg_constraint up ON up.oid = k.conparentid
    WHERE e.classid = 'pg_catalog.pg_constraint'::regclass AND k.conrelid <> 0 AND k.contype <> 'n'
      AND up.conrelid IS DISTINCT FROM k.conrelid
    UNION ALL
    SELECT e.refobjid, e.refobjsubid, 'expression', d.adrelid, a.attname
    FROM edge e
    JOIN pg_catalog.pg_attrdef d ON d.oid = e.objid
    JOIN pg_catalog.pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE e.classid = 'pg_catalog.pg_attrdef'::regclass AND NOT (e.refobjid = d.adrelid AND e.refobjsubid = d.adnum)
    UNION ALL
    -- A generated column is in the account as a column that depends on a column.
    SELECT e.refobjid, e.refobjsubid, 'expression', a.attrelid, a.attname
    FROM edge e
    JOIN pg_catalog.pg_attribute a ON a.attrelid = e.objid AND a.attnum = e.objsubid AND a.attgenerated <> ''
    WHERE e.classid = 'pg_catalog.pg_class'::regclass AND e.objsubid > 0 AND e.refobjsubid > 0
    UNION ALL
    SELECT e.refobjid, e.refobjsubid, CASE WHEN r.rulename = '_RETURN' AND c.relkind IN ('v', 'm') THEN 'view' ELSE 'rule' END,
           r.ev_class, CASE WHEN r.rulename = '_RETURN' AND c.relkind IN ('v', 'm') THEN NULL ELSE r.rulename END
    FROM edge e
    JOIN pg_catalog.pg_rewrite r ON r.oid = e.objid
    JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
    WHERE e.classid = 'pg_catalog.pg_rewrite'::regclass
      -- A view depends on its own relation.
      AND NOT (r.ev_class = e.refobjid AND r.rulename = '_RETURN')
    UNION ALL
    SELECT e.refobjid, e.refobjsubid, 'trigger', g.tgrelid, g.tgname
    FROM edge e JOIN pg_catalog.pg_trigger g ON g.oid = e.objid
    WHERE e.classid = 'pg_catalog.pg_trigger'::regclass AND NOT g.tgisinternal
    UNION ALL
    SELECT e.refobjid, e.refobjsubid, 'policy', p.polrelid, p.polname
    FROM edge e JOIN pg_catalog.pg_policy p ON p.oid = e.objid
    WHERE e.classid = 'pg_catalog.pg_policy'::regclass
)
SELECT json_build_object(
    'on', json_build_array(n.nspname, c.relname),
    'column', a.attname,
    'kind', f.kind,
    'dependent', json_build_array(dn.nspname, d.relname),
    'part', f.part
)::text
FROM found f
JOIN pg_catalog.pg_class c ON c.oid = f.refobjid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_class d ON d.oid = f.relation
JOIN pg_catalog.pg_namespace dn ON dn.oid = d.relnamespace
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = f.refobjid AND a.attnum = f.refobjsubid AND f.refobjsubid > 0
UNION ALL
SELECT json_build_object(
    'on', json_build_array(n.nspname, c.relname),
    'column', a.attname,
    'kind', o.kind,
    'dependent', json_build_array(coalesce(o.schema, ''), o.name),
    'part', o.part
)::text
FROM (
    SELECT e.refobjid, e.refobjsubid, 'function' AS kind, pn.nspname::text AS schema, p.proname::text AS name,
           pg_get_function_identity_arguments(p.oid) AS part
    FROM edge e
    JOIN pg_catalog.pg_proc p ON p.oid = e.objid
    JOIN pg_catalog.pg_namespace pn ON pn.oid = p.pronamespace
    WHERE e.classid = 'pg_catalog.pg_proc'::regclass
    UNION ALL
    -- Functions whose arguments or results have a table's row type.
    SELECT t.typrelid, 0, 'function', pn.nspname::text, p.proname::text, pg_get_function_identity_arguments(p.oid)
    FROM pg_catalog.pg_type t
    JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_type'::regclass AND d.refobjid = t.oid
    JOIN pg_catalog.pg_proc p ON d.classid = 'pg_catalog.pg_proc'::regclass AND p.oid = d.objid
    JOIN pg_catalog.pg_namespace pn ON pn.oid = p.pronamespace
    WHERE t.typrelid = ANY ($1::oid[])
    UNION ALL
    SELECT e.refobjid, e.refobjsubid, 'publication', '', pub.pubname::text, NULL
    FROM edge e
    JOIN pg_catalog.pg_publication_rel r ON r.oid = e.objid
    JOIN pg_catalog.pg_publication pub ON pub.oid = r.prpubid
    WHERE e.classid = 'pg_catalog.pg_publication_rel'::regclass
    UNION ALL
    SELECT e.refobjid, e.refobjsubid, 'statistics', sn.nspname::text, s.stxname::text, NULL
    FROM edge e
    JOIN pg_catalog.pg_statistic_ext s ON s.oid = e.objid
    JOIN pg_catalog.pg_namespace sn ON sn.oid = s.stxnamespace
    WHERE e.classid = 'pg_catalog.pg_statistic_ext'::regclass
) AS o
JOIN pg_catalog.pg_class c ON c.oid = o.refobjid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = o.refobjid AND a.attnum = o.refobjsubid AND o.refobjsubid > 0
