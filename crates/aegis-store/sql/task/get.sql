-- One task, wherever it stands, with what it was asked to do.
--
-- lock: none
-- index: task_pkey, parked_pkey, task_history_pkey, task_body_pkey
-- fence: none: a read
-- returns: optional
-- nullable: pending, owner, run_at, claimed_at, finished_at, cancel_at, result, error, labels, submitter, priority, protocol, input, content_type, checkpoint_protocol, checkpoint_seq
SELECT a.id, n.queue, n.kind, n.lo, n.hi, e.name AS tenant, a.state, a.priority, a.failures, a.interruptions, a.crashes, a.snoozes, a.open_ops,
    a.pending, a.epoch, a.rev, a.owner, a.run_at, a.claimed_at, a.finished_at, a.cancel_at, a.result, a.result_type, a.error,
    aegis.uuid7_time(a.id) AS submitted_at, b.protocol, b.content_type, b.input, b.labels, b.submitter,
    c.protocol AS checkpoint_protocol, c.seq AS checkpoint_seq
FROM aegis.task_any a JOIN aegis.lane n ON n.id = a.lane JOIN aegis.tenant e ON e.id = a.tenant
LEFT JOIN aegis.task_body b ON b.id = a.id LEFT JOIN aegis.checkpoint c ON c.task = a.id
WHERE a.id = :id::uuid
