-- Compares what a worker holds with the database; answers only what the worker has to obey: lost (with the row's epoch),
-- regressed (the row's epoch is below the held one under today's lineage: this database lost its newest claims, and
-- acquisition is closed until it is adopted), or a request to stop with its cause (0 a user, 1 the total deadline, 2 start
-- to close).
--
-- lock: the database row, only when something regressed
-- index: task_pkey
-- fence: none: a read, and the rule for acquire that follows from it
-- returns: many
-- nullable: epoch, cancel_cause
WITH v AS MATERIALIZED (
    SELECT k.id, k.epoch AS held_epoch, t.epoch, CASE
            WHEN t.epoch < k.epoch AND k.floor = i.floor AND k.timeline = i.timeline THEN 'regressed'
            WHEN t.id IS NULL OR t.owner IS DISTINCT FROM :worker::uuid OR t.epoch <> k.epoch OR t.claim_id <> k.claim_id
                OR i.floor IS NULL OR t.floor <> i.floor OR t.timeline <> i.timeline THEN 'lost'
            ELSE 'cancel' END AS verdict, t.cancel_cause
    FROM unnest(:ids::uuid[], :claim_ids::uuid[], :epochs::int8[], :floors::int4[], :timelines::int4[]) AS k (id, claim_id, epoch, floor, timeline)
    LEFT JOIN aegis.lineage() i ON true
    LEFT JOIN LATERAL (SELECT * FROM aegis.task t WHERE t.id = k.id) t ON true
    WHERE t.id IS NULL OR t.owner IS DISTINCT FROM :worker::uuid OR t.epoch <> k.epoch OR t.claim_id <> k.claim_id
        OR i.floor IS NULL OR t.floor <> i.floor OR t.timeline <> i.timeline OR t.cancel_at IS NOT NULL),
c AS (
    UPDATE aegis.database SET closed_at = clock_timestamp(), closed_why = (
        SELECT format('worker %s holds task %s at epoch %s; this database knows epoch %s', :worker::uuid, v.id, v.held_epoch, v.epoch)
        FROM v WHERE v.verdict = 'regressed' LIMIT 1)
    WHERE closed_at IS NULL AND EXISTS (SELECT FROM v WHERE v.verdict = 'regressed'))
SELECT v.id, v.held_epoch, v.epoch, v.verdict, v.cancel_cause FROM v
