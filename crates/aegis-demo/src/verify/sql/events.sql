-- Every end of an execution that was not the end of its task, every refused write, every act of a person; in order.
-- `lo`, `hi`: the lane in which the task waited afterwards. `run_ms`: until when it was postponed.
SELECT e.task::text, (extract(epoch FROM e.at) * 1000)::int8 AS at_ms, e.epoch, e.cause,
    (extract(epoch FROM e.claimed_at) * 1000)::int8 AS claimed_ms, e.detail ->> 'operation' AS operation,
    (e.detail ->> 'resolution')::int2 AS resolution, (e.detail ->> 'current_epoch')::int8 AS current_epoch,
    (extract(epoch FROM (e.detail ->> 'run_at')::timestamptz) * 1000)::int8 AS run_ms, n.lo, n.hi
FROM aegis.task_event e JOIN aegis.tenant t ON t.id = e.tenant LEFT JOIN aegis.lane n ON n.id = (e.detail ->> 'lane')::int
WHERE t.name = $1::text ORDER BY e.task, e.at
