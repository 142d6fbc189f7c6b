-- Workers by release, queue and kind, the newest first, with their leases and what they run.
--
-- lock: none
-- index: task_owner
-- fence: none: a read
-- returns: many
-- nullable: ended_at, predecessor
SELECT w.id, w.name, w.host, w.pid, w.release, w.build, w.state, w.slots, w.registered_at, w.ended_at, w.predecessor, l.lease_until, l.beat_at,
    l.executing, l.lease_until > clock_timestamp() AND w.state <= 1 AS alive,
    (SELECT count(*) FROM aegis.task t WHERE t.owner = w.id AND t.state = 2) AS running,
    ARRAY(SELECT c.queue || '/' || c.kind || ' ' || c.reads_min || '..' || c.reads_max || ' writes ' || c.writes
          FROM aegis.worker_capability c WHERE c.worker = w.id ORDER BY 1) AS capabilities
FROM aegis.worker w JOIN aegis.worker_lease l ON l.worker = w.id
WHERE (:all::boolean OR w.state <= 1) AND (:release?::text IS NULL OR w.release = :release?::text)
    AND ((:queue?::text IS NULL AND :kind?::text IS NULL) OR EXISTS (SELECT FROM aegis.worker_capability c WHERE c.worker = w.id
        AND (:queue?::text IS NULL OR c.queue = :queue?::text) AND (:kind?::text IS NULL OR c.kind = :kind?::text)))
ORDER BY w.registered_at DESC, w.id LIMIT :limit::int8
