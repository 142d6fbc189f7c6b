-- The first answer of an acquire call, for a repeated request: what the worker holds under that request.
--
-- lock: none
-- index: task_owner, task_body_pkey
-- fence: none: a read
-- returns: many
-- nullable: trace, cancel_cause, pending
SELECT t.id, t.lane, t.tenant, t.epoch, t.rev, t.floor, t.timeline, t.failures, t.interruptions, t.crashes, t.snoozes,
    t.parts, t.pending, t.cancel_cause, b.protocol, b.content_type, b.input, b.trace
FROM aegis.task t CROSS JOIN LATERAL (
    SELECT t.input_protocol AS protocol, 0::int2 AS content_type, t.input, t.trace WHERE t.input IS NOT NULL
    UNION ALL
    SELECT b.protocol, b.content_type, b.input, b.trace FROM aegis.task_body b WHERE t.input IS NULL AND b.id = t.id OFFSET 0) b
WHERE t.owner = :worker::uuid AND t.claim_id = :request::uuid AND t.state = 2
