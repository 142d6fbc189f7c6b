-- Extended statistics: $1 their tables' OIDs.
SELECT json_build_object(
    'name', json_build_array(n.nspname, s.stxname),
    'table', json_build_array(tn.nspname, t.relname),
    'definition', pg_get_statisticsobjdef(s.oid)
)::text
FROM pg_catalog.pg_statistic_ext s
JOIN pg_catalog.pg_namespace n ON n.oid = s.stxnamespace
JOIN pg_catalog.pg_class t ON t.oid = s.stxrelid
JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
WHERE s.stxrelid = ANY ($1::oid[])
