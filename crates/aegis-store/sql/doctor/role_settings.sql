-- What the roles of the engine carry by ALTER ROLE, in this database or in all. A setting for this database wins.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: many
SELECT r.rolname::text AS role, coalesce((SELECT jsonb_object_agg(x.name, x.value) FROM (
        SELECT DISTINCT ON (split_part(u.one, '=', 1)) split_part(u.one, '=', 1) AS name, substr(u.one, strpos(u.one, '=') + 1) AS value
        FROM pg_db_role_setting s, unnest(s.setconfig) AS u (one)
        WHERE s.setrole = r.oid AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
        ORDER BY split_part(u.one, '=', 1), s.setdatabase DESC) x), '{}'::jsonb) AS settings
FROM pg_roles r WHERE r.rolname IN ('aegis_engine', 'aegis_lease', 'aegis_submitter', 'aegis_reader') ORDER BY 1
