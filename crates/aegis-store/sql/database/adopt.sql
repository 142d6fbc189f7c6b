-- Accepts this database as the truth after a restore, an upgrade or a copy: takes its system identifier and raises the
-- floor, so that every claim of before is fenced. Who and why are stored.
--
-- lock: the database row
-- index: database_pkey
-- fence: none: an override of every claim at once
-- returns: one
WITH d AS (
    UPDATE aegis.database SET floor = floor + 1, system_identifier = s.system_identifier, postmaster_started = pg_postmaster_start_time(),
        up_since = clock_timestamp(), closed_at = NULL, closed_why = NULL FROM pg_control_system() s
    RETURNING floor, database.system_identifier),
c AS (
    INSERT INTO aegis.fleet_change (what, subject, actor, reason)
    SELECT 'adopt', 'floor ' || d.floor || ', system ' || d.system_identifier, :actor::text, :reason::text FROM d)
SELECT d.floor, d.system_identifier FROM d
