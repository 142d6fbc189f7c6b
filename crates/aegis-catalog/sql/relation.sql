-- Tables, views and the like with their columns: $1 their OIDs, $2 with sizes.
--
-- lock: ACCESS SHARE on each for a moment, for its size and its expressions; on what a view names until the end of the transaction
SELECT json_build_object(
    'name', json_build_array(n.nspname, c.relname),
    'kind', CASE c.relkind
        WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized' ELSE 'foreign' END,
    'owner', pg_get_userbyid(c.relowner),
    'persistence', CASE c.relpersistence WHEN 'p' THEN 'permanent' WHEN 'u' THEN 'unlogged' ELSE 'temporary' END,
    'access_method', am.amname,
    'tablespace', ts.spcname,
    'options', (
        SELECT coalesce(json_agg(o.text ORDER BY o.text), '[]')
        FROM (
            SELECT unnest(c.reloptions) AS text
            UNION ALL
            SELECT 'toast.' || unnest(toast.reloptions) FROM pg_catalog.pg_class toast WHERE toast.oid = c.reltoastrelid
        ) AS o
    ),
    'row_security', c.relrowsecurity,
    'force_row_security', c.relforcerowsecurity,
    'replica_identity', CASE c.relreplident
        WHEN 'd' THEN 'default' WHEN 'n' THEN 'nothing' WHEN 'f' THEN 'full'
        ELSE coalesce('index ' || (
            SELECT ic.relname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class ic ON ic.oid = i.indexrelid
            WHERE i.indrelid = c.oid AND i.indisreplident
        ), 'nothing') END,
    'inherits', (
        SELECT coalesce(json_agg(json_build_array(pn.nspname, p.relname) ORDER BY h.inhseqno), '[]')
        FROM pg_catalog.pg_inherits h
        JOIN pg_catalog.pg_class p ON p.oid = h.inhparent
        JOIN pg_catalog.pg_namespace pn ON pn.oid = p.relnamespace
        WHERE h.inhrelid = c.oid AND NOT c.relispartition
    ),
    'partition_of', (
        SELECT json_build_object(
            'parent', json_build_array(pn.nspname, p.relname),
            'bound', pg_get_expr(c.relpartbound, c.oid),
            'detach_pending', h.inhdetachpending
        )
        FROM pg_catalog.pg_inherits h
        JOIN pg_catalog.pg_class p ON p.oid = h.inhparent
        JOIN pg_catalog.pg_namespace pn ON pn.oid = p.relnamespace
        WHERE h.inhrelid = c.oid AND c.relispartition
    ),
    'partition_key', CASE WHEN c.relkind = 'p' THEN pg_get_partkeydef(c.oid) END,
    'default_partition', (
        SELECT json_build_array(dn.nspname, d.relname)
        FROM pg_catalog.pg_partitioned_table pt
        JOIN pg_catalog.pg_class d ON d.oid = pt.partdefid
        JOIN pg_catalog.pg_namespace dn ON dn.oid = d.relnamespace
        WHERE pt.partrelid = c.oid
    ),
    'definition', CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END,
    'foreign', (
        SELECT concat_ws(' ', quote_ident(fs.srvname), (SELECT string_agg(o, ', ' ORDER BY o) FROM unnest(ft.ftoptions) AS o))
        FROM pg_catalog.pg_foreign_table ft
        JOIN pg_catalog.pg_foreign_server fs ON fs.oid = ft.ftserver
        WHERE ft.ftrelid = c.oid
    ),
    'columns', coalesce(columns.list, '[]'),
    'size', CASE WHEN $2::boolean AND c.relkind IN ('r', 'm') THEN (
        SELECT json_build_object(
            'table_bytes', bytes.own, 'total_bytes', bytes.total, 'rows', CASE WHEN c.reltuples >= 0 THEN c.reltuples END
        )
        FROM (SELECT pg_table_size(c.oid) AS own, pg_total_relation_size(c.oid) AS total OFFSET 0) AS bytes
        -- A table that was dropped a moment ago has none.
        WHERE bytes.own IS NOT NULL AND bytes.total IS NOT NULL
    ) END
)::text
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam
LEFT JOIN pg_catalog.pg_tablespace ts ON ts.oid = c.reltablespace
LEFT JOIN LATERAL (
    SELECT json_agg(json_build_object(
        'name', a.attname,
        'position', a.position,
        'data_type', format_type(a.atttypid, a.atttypmod),
        'type_name', json_build_array(tn.nspname, t.typname),
        'element', CASE WHEN e.oid IS NOT NULL THEN json_build_array(en.nspname, e.typname) END,
        'collation', CASE WHEN a.attcollation <> t.typcollation THEN (
            SELECT json_build_array(cn.nspname, co.collname) FROM pg_catalog.pg_collation co
            JOIN pg_catalog.pg_namespace cn ON cn.oid = co.collnamespace WHERE co.oid = a.attcollation
        ) END,
        'default', pg_get_expr(d.adbin, d.adrelid),
        'generated', CASE a.attgenerated WHEN 's' THEN 'stored' WHEN 'v' THEN 'virtual' ELSE 'no' END,
        'identity', CASE a.attidentity WHEN 'a' THEN 'always' WHEN 'd' THEN 'by_default' ELSE 'no' END,
        'not_null', a.attnotnull,
        'not_null_valid', coalesce(nn.convalidated, true),
        'not_null_constraint', nn.conname,
        'storage', CASE WHEN a.attstorage <> t.typstorage THEN
            CASE a.attstorage WHEN 'p' THEN 'plain' WHEN 'e' THEN 'external' WHEN 'x' THEN 'extended' ELSE 'main' END END,
        'compression', CASE a.attcompression WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' END,
        'local', a.attislocal
    ) ORDER BY a.attnum) AS list
    FROM (
        SELECT pa.*, row_number() OVER (ORDER BY pa.attnum) AS position
        FROM pg_catalog.pg_attribute pa
        WHERE pa.attrelid = c.oid AND pa.attnum > 0 AND NOT pa.attisdropped
    ) AS a
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    JOIN pg_catalog.pg_namespace tn ON tn.oid = t.typnamespace
    LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
    LEFT JOIN pg_catalog.pg_namespace en ON en.oid = e.typnamespace
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    -- PostgreSQL 18 keeps NOT NULL as constraints, and attnotnull is true while one is NOT VALID.
    LEFT JOIN pg_catalog.pg_constraint nn ON nn.conrelid = a.attrelid AND nn.contype = 'n' AND nn.conkey = ARRAY[a.attnum]
) AS columns ON true
WHERE c.oid = ANY ($1::oid[])
