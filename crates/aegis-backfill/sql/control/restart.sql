-- Forgets an ended job: the next run begins it anew. Its leaves and failed rows go with it. $1 change; who ($2) and why ($3) are for
-- the event, which stays.
WITH gone AS (
    DELETE FROM aegis_migrate.backfill WHERE change = $1 AND state IN ('failed', 'cancelled', 'done') RETURNING change, state, run, epoch
)
INSERT INTO aegis_migrate.event (run, epoch, event)
SELECT run, epoch, jsonb_build_object('event', 'backfill_restart', 'change', change, 'was', state, 'by', $2::text, 'reason', $3::text)
FROM gone RETURNING event
