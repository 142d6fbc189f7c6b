-- What people changed about the fleet, the newest first.
--
-- lock: none
-- index: fleet_change_pkey
-- fence: none: a read
-- returns: many
SELECT c.n, c.at, c.what, c.subject, c.actor, c.reason FROM aegis.fleet_change c ORDER BY c.n DESC LIMIT :limit::int8
