-- One beat: moves the lease while it still holds, in the guarded form. No row: the lease is lost, for ever. A beat that is not
-- newer than the stored one moves nothing and is answered all the same. `state` 1: somebody asked this worker to drain.
-- `absent`: running rows that the last beat did not name and that are still there. `sent_at` is the worker's own clock: kept as a
-- difference for people, judged by nothing.
--
-- lock: the lease row FOR NO KEY UPDATE, judged after the lock
-- index: worker_lease_pkey
-- fence: none: the lease itself: lease_live and the number of the beat, judged after its lock
-- returns: optional
WITH l AS MATERIALIZED (SELECT worker FROM aegis.worker_lease WHERE worker = :worker::uuid FOR NO KEY UPDATE),
g AS MATERIALIZED (SELECT aegis.lease_live(:worker::uuid) AS ok FROM (SELECT count(*) AS n FROM l) x WHERE x.n > 0),
u AS (
    UPDATE aegis.worker_lease t SET lease_until = greatest(t.lease_until, clock_timestamp() + t.ttl_ms * interval '1 ms'), beat = :beat::int8,
        beat_at = clock_timestamp(), executing = :executing::int4, claim_ticks = :claim_ticks::int8, progress_ticks = :progress_ticks::int8,
        claim_moved_at = CASE WHEN t.claim_ticks = :claim_ticks::int8 THEN coalesce(t.claim_moved_at, clock_timestamp()) ELSE clock_timestamp() END,
        progress_moved_at = CASE WHEN t.progress_ticks = :progress_ticks::int8 AND t.executing > 0
            THEN coalesce(t.progress_moved_at, clock_timestamp()) ELSE clock_timestamp() END,
        clock_ahead_ms = (extract(epoch FROM :sent_at::timestamptz - clock_timestamp()) * 1000)::int8
    FROM g WHERE g.ok AND t.beat < :beat::int8 AND t.worker = ANY (ARRAY(SELECT l.worker FROM l)))
SELECT e.ttl_ms, w.state, cardinality(e.absent) AS absent FROM g, aegis.worker w JOIN aegis.worker_lease e ON e.worker = w.id WHERE g.ok AND w.id = :worker::uuid
