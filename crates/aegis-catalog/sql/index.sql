-- Indexes of tables: $1 the tables' OIDs, $2 with sizes.
--
-- lock: ACCESS SHARE on each for a moment
SELECT json_build_object(
    'name', json_build_array(n.nspname, c.relname),
    'table', json_build_array(tn.nspname, t.relname),
    'method', am.amname,
    'keys', (
        SELECT json_agg(json_build_object(
            'expression', pg_get_indexdef(i.indexrelid, k, false),
            'column', (
                SELECT a.attname FROM pg_catalog.pg_attribute a
                WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[k - 1] AND i.indkey[k - 1] <> 0
            ),
            'opclass', (
                SELECT json_build_array(ocn.nspname, oc.opcname) FROM pg_catalog.pg_opclass oc
                JOIN pg_catalog.pg_namespace ocn ON ocn.oid = oc.opcnamespace WHERE oc.oid = i.indclass[k - 1]
            ),
            'opclass_options', (
                SELECT coalesce(json_agg(o ORDER BY o), '[]')
                FROM pg_catalog.pg_attribute ia, unnest(ia.attoptions) AS o
                WHERE ia.attrelid = i.indexrelid AND ia.attnum = k
            ),
            'collation', (
                SELECT json_build_array(cn.nspname, co.collname) FROM pg_catalog.pg_collation co
                JOIN pg_catalog.pg_namespace cn ON cn.oid = co.collnamespace WHERE co.oid = i.indcollation[k - 1]
            ),
            'descending', (i.indoption[k - 1] & 1) <> 0,
            'nulls_first', (i.indoption[k - 1] & 2) <> 0
        ) ORDER BY k)
        FROM generate_series(1, i.indnkeyatts::int) AS k
    ),
    'include', (
        SELECT coalesce(json_agg(pg_get_indexdef(i.indexrelid, k, false) ORDER BY k), '[]')
        FROM generate_series(i.indnkeyatts::int + 1, i.indnatts::int) AS k
    ),
    'predicate', pg_get_expr(i.indpred, i.indrelid),
    'unique', i.indisunique,
    -- Not on PostgreSQL 14.
    'nulls_not_distinct', coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false),
    'primary', i.indisprimary,
    'exclusion', i.indisexclusion,
    'constraint', (
        SELECT k.conname FROM pg_catalog.pg_constraint k
        WHERE k.conindid = i.indexrelid AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u', 'x')
    ),
    'valid', i.indisvalid,
    'ready', i.indisready,
    'live', i.indislive,
    'clustered', i.indisclustered,
    'tablespace', ts.spcname,
    'options', (SELECT coalesce(json_agg(o ORDER BY o), '[]') FROM unnest(c.reloptions) AS o),
    'parent', (
        SELECT json_build_array(pn.nspname, p.relname)
        FROM pg_catalog.pg_inherits h
        JOIN pg_catalog.pg_class p ON p.oid = h.inhparent
        JOIN pg_catalog.pg_namespace pn ON pn.oid = p.relnamespace
        WHERE h.inhrelid = i.indexrelid
    ),
    'definition', pg_get_indexdef(i.indexrelid),
    'bytes', CASE WHEN $2::boolean AND c.relkind = 'i' THEN pg_relation_size(i.indexrelid) END
)::text
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
JOIN pg_catalog.pg_am am ON am.oid = c.relam
LEFT JOIN pg_catalog.pg_tablespace ts ON ts.oid = c.reltablespace
WHERE i.indrelid = ANY ($1::oid[])
