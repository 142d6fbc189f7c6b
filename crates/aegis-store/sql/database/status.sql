-- What this database is: schema, lineage, up since when, partitions ahead.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
-- nullable: lineage_floor, timeline, partitions_until, closed_at, closed_why
SELECT v.schema, v.min_schema, d.system_identifier, d.floor, d.up_since, d.closed_at, d.closed_why, i.floor AS lineage_floor, i.timeline,
    current_setting('server_version') AS server_version,
    (SELECT max(to_date(right(c.relname, 8), 'YYYYMMDD'))::text FROM pg_class c JOIN pg_inherits h ON h.inhrelid = c.oid
     WHERE h.inhparent = 'aegis.task_history'::regclass) AS partitions_until
FROM aegis.schema_version v, aegis.database d LEFT JOIN aegis.lineage() i ON true
