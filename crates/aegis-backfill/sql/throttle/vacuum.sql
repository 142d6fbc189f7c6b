-- Vacuums of a table, $1 its oid, and those in this database that this role may not see.
SELECT count(*) FILTER (WHERE relid = $1) AS here, count(*) FILTER (WHERE relid IS NULL) AS hidden
FROM pg_stat_progress_vacuum WHERE datname = current_database()
