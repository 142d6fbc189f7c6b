-- What a commit waits for, and whether anything was dispatched lately that needs it (queryable or blind; the newest 10,000 operations).
--
-- lock: none
-- index: operation_pkey
-- fence: none: a read
-- returns: one
-- nullable: engine_commit
SELECT current_setting('synchronous_standby_names') AS names, count(s.application) AS connected,
    count(*) FILTER (WHERE s.sync_state IN ('sync', 'quorum')) AS synchronous, count(*) FILTER (WHERE s.application IS NOT NULL AND s.sync_state IS NULL) AS hidden,
    current_setting('synchronous_commit') AS commit,
    (SELECT substr(u.one, 20) FROM pg_db_role_setting r JOIN pg_roles e ON e.oid = r.setrole, unnest(r.setconfig) AS u (one)
     WHERE e.rolname = 'aegis_engine' AND u.one LIKE 'synchronous_commit=%' ORDER BY r.setdatabase DESC LIMIT 1) AS engine_commit,
    EXISTS (SELECT FROM (SELECT o.class FROM aegis.operation o ORDER BY o.task DESC, o.id DESC LIMIT 10000) x WHERE x.class IN (2, 3)) AS needed
FROM (SELECT 1) one LEFT JOIN aegis.standbys() s ON true
