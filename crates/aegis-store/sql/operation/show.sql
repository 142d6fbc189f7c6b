-- One operation with its request and result.
--
-- lock: none
-- index: operation_pkey
-- fence: none: a read
-- returns: optional
-- nullable: worker, release, first_dispatched_at, dispatched_at, key_valid_until, quiet_until, finished_at, request, result, note, taken_by, taken_at, resolution, resolved_by, resolved_at, evidence
SELECT o.task, o.id, e.name AS tenant, o.name, o.key, o.class, o.state, o.dispatches, o.protocol, o.epoch, o.timeout_ms, o.quiet_ms, o.worker,
    o.release, o.first_dispatched_at, o.dispatched_at, o.key_valid_until, o.quiet_until, o.finished_at, o.request, o.result, o.note,
    o.taken_by, o.taken_at, o.resolution, o.resolved_by, o.resolved_at, o.evidence, encode(o.fingerprint, 'hex') AS fingerprint
FROM aegis.operation o JOIN aegis.tenant e ON e.id = o.tenant WHERE o.task = :task::uuid AND o.id = :id::text
