-- One worker: its gate, its lease, what it can, who came before and after it.
--
-- lock: none
-- index: worker_pkey, task_owner
-- fence: none: a read
-- returns: optional
-- nullable: ended_at, draining_at, predecessor, successor
SELECT w.id, w.name, w.host, w.pid, w.release, w.build, w.digest, w.state, w.slots, w.registered_at, w.draining_at, w.ended_at, w.predecessor,
    (SELECT s.id FROM aegis.worker s WHERE s.predecessor = w.id ORDER BY s.registered_at DESC LIMIT 1) AS successor,
    l.lease_until, l.ttl_ms, l.beat_at, l.executing, l.lease_until > clock_timestamp() AND w.state <= 1 AS alive,
    (SELECT count(*) FROM aegis.task t WHERE t.owner = w.id AND t.state = 2) AS running,
    ARRAY(SELECT c.queue || '/' || c.kind || ' ' || c.reads_min || '..' || c.reads_max || ' writes ' || c.writes
          FROM aegis.worker_capability c WHERE c.worker = w.id ORDER BY 1) AS capabilities,
    EXISTS (SELECT FROM aegis.pause p WHERE p.scope = 'release' AND p.value = w.release) AS release_paused
FROM aegis.worker w JOIN aegis.worker_lease l ON l.worker = w.id WHERE w.id = :worker::uuid
