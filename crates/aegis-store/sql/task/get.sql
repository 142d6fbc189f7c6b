-- One task, wherever it stands, with what it was asked to do.
--
-- lock: none
-- index: task_pkey, parked_pkey, task_history_pkey, task_body_pkey, checkpoint_pkey
-- fence: none: a read
-- returns: optional
-- nullable: pending, owner, run_at, claimed_at, finished_at, cancel_at, deadline_at, result, error, labels, trace, submitter, erased_at, priority, protocol, input, content_type, checkpoint_protocol, checkpoint_seq, checkpoint_epoch, checkpoint_at
SELECT a.id, n.queue, n.kind, n.lo, n.hi, e.name AS tenant, a.state, a.priority, a.failures, a.interruptions, a.crashes, a.snoozes, a.open_ops,
    a.pending, a.epoch, a.rev, a.owner, a.run_at, a.claimed_at, a.finished_at, a.cancel_at, a.result, a.result_type, a.error,
    aegis.uuid7_time(a.id) AS submitted_at, b.protocol, b.content_type, b.input, b.labels, b.trace, b.submitter, h.erased_at,
    c.protocol AS checkpoint_protocol, c.seq AS checkpoint_seq, c.epoch AS checkpoint_epoch, c.written_at AS checkpoint_at,
    coalesce(t.deadline_at, p.deadline_at) AS deadline_at, p.id IS NOT NULL AS parked
FROM aegis.task_any a JOIN aegis.lane n ON n.id = a.lane JOIN aegis.tenant e ON e.id = a.tenant
LEFT JOIN aegis.task t ON t.id = a.id LEFT JOIN aegis.parked p ON p.id = a.id
LEFT JOIN aegis.task_history h ON h.id = a.id
LEFT JOIN aegis.input_any b ON b.id = a.id LEFT JOIN aegis.checkpoint c ON c.task = a.id
WHERE a.id = :id::uuid
