-- One who moves a switch, and no backfill that begins meanwhile, until the end of the transaction: `job/mover.sql` of aegis-backfill
-- waits for it. A statement of its own, so that the next one sees a job that was made before. $1 change.
SELECT pg_advisory_xact_lock(1634035564, hashtext($1))
