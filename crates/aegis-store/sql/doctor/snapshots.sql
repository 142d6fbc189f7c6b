-- Who holds back the removal of dead rows, the furthest first.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: many
-- nullable: name, role, application, since_s, xids
SELECT h.holder, h.name, h.role, h.application, extract(epoch FROM clock_timestamp() - h.since)::float8 AS since_s, h.xids
FROM aegis.snapshot_holders() h ORDER BY h.xids DESC NULLS LAST LIMIT 20
