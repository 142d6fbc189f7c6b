-- Which life of the database this is, and whether acquisition is open.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
-- nullable: lineage_floor, timeline, closed_at, closed_why
SELECT d.system_identifier, (SELECT s.system_identifier FROM pg_control_system() s) AS found, d.floor, d.closed_at, d.closed_why, i.floor AS lineage_floor, i.timeline
FROM aegis.database d LEFT JOIN aegis.lineage() i ON true
