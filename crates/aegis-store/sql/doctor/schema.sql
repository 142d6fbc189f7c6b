-- The schema as installed, and the newest step of its ledger.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
-- nullable: newest
SELECT v.schema, v.min_schema, (SELECT count(*) FROM aegis.schema_step) AS steps, (SELECT max(s.version) FROM aegis.schema_step s) AS newest
FROM aegis.schema_version v
