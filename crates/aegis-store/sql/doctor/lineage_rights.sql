-- Which roles of the engine may not read the system identifier.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
SELECT coalesce(array_agg(r.rolname::text ORDER BY r.rolname) FILTER (WHERE NOT has_function_privilege(r.oid, 'pg_control_system()', 'execute')
        OR NOT has_function_privilege(r.oid, 'pg_walfile_name(pg_lsn)', 'execute')), '{}') AS refused,
    has_function_privilege('pg_control_system()', 'execute') AS mine
FROM pg_roles r WHERE r.rolname IN ('aegis_engine', 'aegis_lease', 'aegis_submitter')
