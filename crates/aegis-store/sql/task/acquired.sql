-- The first answer of an acquire call, for a repeated request: what the worker holds under that request.
--
-- lock: none
-- index: task_owner
-- fence: none: a read
-- returns: many
-- nullable: trace, cancel_cause, pending
SELECT t.id, t.lane, t.tenant, t.epoch, t.rev, t.floor, t.timeline, t.failures, t.interruptions, t.crashes, t.snoozes,
    t.parts, t.pending, t.cancel_cause, b.protocol, b.content_type, b.input, b.trace
FROM aegis.task t JOIN aegis.task_body b ON b.id = t.id
WHERE t.owner = :worker::uuid AND t.claim_id = :request::uuid AND t.state = 2
