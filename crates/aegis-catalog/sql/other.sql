-- Objects of kinds that are not modelled, by the server's own words: $1 schemas. Whoever has one should know that it is there.
SELECT json_build_object('kind', i.type, 'identity', i.identity, 'schema', i.schema)::text
FROM (
    SELECT tableoid, oid, oprnamespace AS space FROM pg_catalog.pg_operator
    UNION ALL SELECT tableoid, oid, opcnamespace FROM pg_catalog.pg_opclass
    UNION ALL SELECT tableoid, oid, opfnamespace FROM pg_catalog.pg_opfamily
    UNION ALL SELECT tableoid, oid, collnamespace FROM pg_catalog.pg_collation
    UNION ALL SELECT tableoid, oid, connamespace FROM pg_catalog.pg_conversion
    UNION ALL SELECT tableoid, oid, cfgnamespace FROM pg_catalog.pg_ts_config
    UNION ALL SELECT tableoid, oid, dictnamespace FROM pg_catalog.pg_ts_dict
    UNION ALL SELECT tableoid, oid, prsnamespace FROM pg_catalog.pg_ts_parser
    UNION ALL SELECT tableoid, oid, tmplnamespace FROM pg_catalog.pg_ts_template
    UNION ALL SELECT tableoid, oid, 0 FROM pg_catalog.pg_cast
    UNION ALL SELECT tableoid, oid, 0 FROM pg_catalog.pg_language
    UNION ALL SELECT tableoid, oid, 0 FROM pg_catalog.pg_foreign_data_wrapper
    UNION ALL SELECT tableoid, oid, 0 FROM pg_catalog.pg_foreign_server
    UNION ALL SELECT tableoid, oid, 0 FROM pg_catalog.pg_am
    UNION ALL SELECT tableoid, oid, 0 FROM pg_catalog.pg_transform
) AS o
CROSS JOIN LATERAL pg_identify_object(o.tableoid, o.oid, 0) AS i
-- Below stands what initdb made.
WHERE o.oid >= 16384 AND (o.space = 0 OR o.space = ANY ($1::oid[]))
  AND NOT EXISTS (
      SELECT FROM pg_catalog.pg_depend d WHERE d.classid = o.tableoid AND d.objid = o.oid AND d.deptype IN ('e', 'i')
  )
  AND i.identity IS NOT NULL
