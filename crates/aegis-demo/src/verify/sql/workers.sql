-- Every incarnation that could be given tasks of this queue and kind, and from when until when.
SELECT c.reads_min, c.reads_max, (extract(epoch FROM w.registered_at) * 1000)::int8 AS from_ms,
    (extract(epoch FROM least(w.draining_at, w.ended_at)) * 1000)::int8 AS until_ms
FROM aegis.worker_capability c JOIN aegis.worker w ON w.id = c.worker WHERE c.queue = $1::text AND c.kind = $2::text
