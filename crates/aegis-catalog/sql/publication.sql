-- Publications.
SELECT json_build_object(
    'name', p.pubname,
    'owner', pg_get_userbyid(p.pubowner),
    'all_tables', p.puballtables,
    'operations', array_to_json(array_remove(ARRAY[
        CASE WHEN p.pubinsert THEN 'insert' END, CASE WHEN p.pubupdate THEN 'update' END,
        CASE WHEN p.pubdelete THEN 'delete' END, CASE WHEN p.pubtruncate THEN 'truncate' END], NULL)),
    'via_root', p.pubviaroot,
    'tables', (
        SELECT coalesce(json_agg(json_build_object(
            'table', json_build_array(n.nspname, c.relname),
            'columns', (
                SELECT json_agg(a.attname ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
                WHERE a.attrelid = r.prrelid AND a.attnum = ANY (r.prattrs)
            ),
            'filter', pg_get_expr(r.prqual, r.prrelid)
        ) ORDER BY n.nspname, c.relname), '[]')
        FROM pg_catalog.pg_publication_rel r
        JOIN pg_catalog.pg_class c ON c.oid = r.prrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE r.prpubid = p.oid
    ),
    'schemas', (
        SELECT coalesce(json_agg(n.nspname ORDER BY n.nspname), '[]')
        FROM pg_catalog.pg_publication_namespace pn
        JOIN pg_catalog.pg_namespace n ON n.oid = pn.pnnspid
        WHERE pn.pnpubid = p.oid
    )
)::text
FROM pg_catalog.pg_publication p
